//! `everturn chat`: a conversation in the terminal.

mod address;
mod key;
mod link;
mod prompt;
mod story;
mod turn;
mod view;

use std::{
    env,
    io::{self, IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use everturn_wire::ConversationId;
use uuid::Uuid;

use crate::{
    cli,
    config::{Config, Environment, Hidden},
    interrupt::Interrupt,
    serve,
};
use address::Address;
use key::Keys;
use link::Link;
use story::Ending;
use turn::Turn;
use view::{Live, Plain, View};

/// The most that is read from standard input, in bytes: more than any server takes.
const LONGEST_INPUT: u64 = 2 << 20;

/// What the program says when a person ended it.
const INTERRUPTED: u8 = 130;

/// Talks to a model until there is nothing more to say.
pub(crate) async fn run(args: &cli::Chat) -> Result<ExitCode> {
    let terminal = Terminal::of_process();
    let message = message(args, &terminal)?;
    let mut interrupt = Interrupt::listen()?;
    key::restore_on_panic();
    let conversation_id = match &args.conversation {
        Some(id) => ConversationId::parse(id)?,
        None => ConversationId::from(Uuid::now_v7().to_string()),
    };
    let host = Host::find(args).await?;
    let link = Link::open(host.address, host.token).await?;
    let model = args.model.clone();
    let mut chat = Chat { conversation_id, model, link, view: terminal.view(args), terminal };
    match message {
        Some(message) => {
            let ending = chat.turn(message, &mut interrupt).await?;
            if let Some(server) = args.server.as_ref().filter(|_| ending != Ending::Refused) {
                chat.say_how_to_go_on(server)?;
            }
            Ok(exit_code(ending))
        }
        None => chat.converse(&host.name, &mut interrupt).await,
    }
}

/// What to say; none when it is typed line by line.
fn message(args: &cli::Chat, terminal: &Terminal) -> Result<Option<String>> {
    if let Some(message) = args.message() {
        return Ok(Some(message));
    }
    if !args.is_piped() && io::stdin().is_terminal() {
        return match terminal.is_live {
            true => Ok(None),
            false => bail!("nothing to say: write everturn chat \"hello\", or pipe a message in"),
        };
    }
    let mut text = String::new();
    let read = io::stdin().lock().take(LONGEST_INPUT).read_to_string(&mut text);
    read.context("standard input is no text")?;
    match text.trim_end() {
        "" => bail!("nothing to say: standard input is empty"),
        text => Ok(Some(text.to_owned())),
    }
}

fn exit_code(ending: Ending) -> ExitCode {
    match ending {
        Ending::Answered => ExitCode::SUCCESS,
        Ending::Failed | Ending::Refused | Ending::Cancelled => ExitCode::FAILURE,
        Ending::Interrupted => INTERRUPTED.into(),
    }
}

/// The server that is talked through.
struct Host {
    address: Address,
    token: Option<Hidden>,
    /// What a person is told about it.
    name: String,
}

impl Host {
    /// The one that was named, else a private one inside this process.
    async fn find(args: &cli::Chat) -> Result<Self> {
        let environment = Environment::of_process();
        if let Some(server) = &args.server {
            let token = args.token.clone().or_else(|| environment.get("EVERTURN_TOKEN"));
            let token = token.as_deref().and_then(Hidden::new);
            return Ok(Self { address: Address::parse(server)?, token, name: server.clone() });
        }
        let config = Config::resolve(&args.flags(), &environment)?;
        let private = serve::private(config).await?;
        let name = args.model.clone().unwrap_or(private.default_model);
        Ok(Self { address: Address::parse(&private.url)?, token: Some(private.token), name })
    }
}

/// What is known about where this runs.
#[derive(Clone, Copy)]
struct Terminal {
    /// Lines may be redrawn.
    is_live: bool,
    /// Somebody may press keys.
    has_keys: bool,
}

impl Terminal {
    fn of_process() -> Self {
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_live = io::stdout().is_terminal() && io::stderr().is_terminal() && !is_dumb;
        Self { is_live, has_keys: is_live && io::stdin().is_terminal() }
    }

    fn view(self, args: &cli::Chat) -> Box<dyn View> {
        match self.is_live {
            true => Box::new(Live::new(io::stdout(), view::columns, self.has_keys, args.show_reasoning)),
            false => Box::new(Plain::new(io::stdout(), io::stderr(), args.show_reasoning)),
        }
    }
}

/// A conversation in the terminal.
struct Chat {
    conversation_id: ConversationId,
    model: Option<String>,
    link: Link,
    view: Box<dyn View>,
    terminal: Terminal,
}

impl Chat {
    async fn turn(&mut self, message: String, interrupt: &mut Interrupt) -> Result<Ending> {
        let mut keys = match self.terminal.has_keys {
            true => Keys::of_terminal(interrupt)?,
            false => Keys::none(interrupt),
        };
        let (link, view) = (&mut self.link, self.view.as_mut());
        let turn = Turn::begin(&self.conversation_id, message, self.model.clone(), link, view).await?;
        turn.run(&mut keys).await
    }

    /// One line, one message, until the input ends.
    async fn converse(&mut self, name: &str, interrupt: &mut Interrupt) -> Result<ExitCode> {
        let greeting = format!(
            "everturn {} \u{b7} {name}\nEnter sends, Ctrl-C stops an answer, Ctrl-D leaves.",
            env!("CARGO_PKG_VERSION")
        );
        self.note(&greeting)?;
        loop {
            writeln!(io::stdout())?;
            let Some(line) = self.line(interrupt).await? else {
                writeln!(io::stdout())?;
                return Ok(INTERRUPTED.into());
            };
            match line.as_deref().map(str::trim) {
                None => {
                    writeln!(io::stdout())?;
                    return Ok(ExitCode::SUCCESS);
                }
                Some("") => {}
                Some(message) => {
                    self.turn(message.to_owned(), interrupt).await?;
                }
            }
        }
    }

    /// The next line, none at the end of the input; nothing at all when the program is to end. Meanwhile the connection
    /// is listened to: a server hangs up on a client that does not answer.
    async fn line(&mut self, interrupt: &mut Interrupt) -> Result<Option<Option<String>>> {
        let line = prompt::line();
        tokio::pin!(line);
        loop {
            tokio::select! {
                line = &mut line => return Ok(Some(line?)),
                () = interrupt.next() => return Ok(None),
                news = self.link.next() => drop(news?),
            }
        }
    }

    fn say_how_to_go_on(&mut self, server: &str) -> Result<()> {
        if self.terminal.is_live {
            self.note(&format!(
                "Go on: everturn chat --server {server} --conversation {}",
                self.conversation_id
            ))?;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> Result<()> {
        Ok(self.view.line(&view::Line::Note(text.to_owned()))?)
    }
}
