//! `everturn chat`: a conversation in the terminal.

mod allowed;
mod approval;
mod directory;
mod fallback;
mod key;
mod link;
mod message;
mod order;
mod prompt;
mod run;
mod settings;
mod story;
mod tools;
mod turn;
mod view;

use std::{
    collections::VecDeque,
    env,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use anyhow::{Result, bail};
use everturn_console::{Hidden, Interrupt, printer, wording};
use everturn_wire::{ApprovalMode, ConversationId, TurnId};
use uuid::Uuid;

use crate::{args, remote::Address};
use directory::Directory;
use key::Keys;
use link::Link;
use order::{EDIT, Order, RETRY};
use prompt::{Answer, Prompt};
pub use run::run_once;
use story::{Beginning, Ending};
use turn::{NOT_ASKED, Permissions, Start, Turn};
use view::{Live, Plain, View};

/// What the program says when a person ended it.
const INTERRUPTED: u8 = 130;

/// The most characters that are shown of a queued message.
const QUEUED: usize = 80;

/// Talks to a model until there is nothing more to say, through the server that `host` finds or starts.
///
/// # Errors
/// When it cannot begin, or the server is lost.
pub async fn run(args: &args::Chat, host: impl AsyncFnOnce() -> Result<Host>) -> Result<ExitCode> {
    check_place(args)?;
    let terminal = Terminal::of_process();
    let mode = terminal.approvals(args)?;
    let message = message::of(args, terminal.is_live)?;
    let mut interrupt = Interrupt::listen()?;
    key::restore_on_panic();
    let host = host().await?;
    let link = Link::open(host.address.clone(), host.token.clone()).await?;
    let (conversation_id, last) = host.conversation(args).await?;
    let (model, view) = (args.model.clone(), terminal.view(args));
    let server = (host.address.clone(), host.token.clone());
    let permissions = terminal.permissions(mode, args, &conversation_id);
    let draft = String::new();
    let mut chat = Chat { conversation_id, model, link, server, view, terminal, permissions, last, draft };
    for line in &host.notes {
        chat.note(line)?;
    }
    match message {
        Some(message) => {
            let ending = chat.say(message, true, &mut interrupt).await?;
            if !chat.draft.trim().is_empty() {
                chat.note(&format!("Not sent: {}", chat.draft.trim()))?;
            }
            if let Some(server) = args.server.as_ref().filter(|_| ending != Ending::Refused) {
                chat.say_how_to_go_on(server)?;
            }
            Ok(exit_code(ending))
        }
        None => chat.converse(&host.name, &mut interrupt).await,
    }
}

/// Refuses a conversation where none is kept.
fn check_place(args: &args::Chat) -> Result<()> {
    if args.server.is_none() && (args.conversation.is_some() || args.new_conversation.is_some()) {
        bail!(
            "a conversation is kept by a running server: name it with --server, e.g. --server http://127.0.0.1:4777 \
             (everturn serve starts one); without --server nothing is kept"
        );
    }
    Ok(())
}

fn exit_code(ending: Ending) -> ExitCode {
    match ending {
        Ending::Answered => ExitCode::SUCCESS,
        Ending::Failed | Ending::Refused | Ending::Cancelled => ExitCode::FAILURE,
        Ending::Interrupted => INTERRUPTED.into(),
    }
}

/// The server that is talked through.
pub struct Host {
    address: Address,
    token: Option<Hidden>,
    /// What a person is told about it.
    name: String,
    /// What else they should know.
    notes: Vec<String>,
}

impl Host {
    /// The server that was named.
    ///
    /// # Errors
    /// When that is not an address.
    pub fn named(server: &str, token: Option<Hidden>) -> Result<Self> {
        Ok(Self { address: Address::parse(server)?, token, name: server.to_owned(), notes: Vec::new() })
    }

    /// A private one inside this process. `name`: what a person is told about it; `notes`: what else they should know.
    ///
    /// # Errors
    /// When that is not an address.
    pub fn private(url: &str, token: Hidden, name: String, notes: Vec<String>) -> Result<Self> {
        Ok(Self { address: Address::parse(url)?, token: Some(token), name, notes })
    }

    /// The conversation that is asked for, and what of it can be asked again; else a new one.
    async fn conversation(&self, args: &args::Chat) -> Result<(ConversationId, Last)> {
        let directory = || Directory::new(&self.address, self.token.as_ref());
        match (&args.conversation, &args.new_conversation) {
            (Some(asked), _) => {
                let directory = directory()?;
                let id = directory.find(asked).await?;
                let failed = directory.failed(&id).await?;
                let message = directory.last_message(&id).await?;
                Ok((id, Last { failed, message }))
            }
            (None, Some(name)) => Ok((directory()?.check_free(name).await?, Last::default())),
            (None, None) => Ok((ConversationId::from(Uuid::now_v7().to_string()), Last::default())),
        }
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

    /// What becomes of calls that need approval. Where nobody can press a key, they are denied unless told otherwise: then
    /// somebody else can answer at the server.
    fn approvals(self, args: &args::Chat) -> Result<ApprovalMode> {
        match args.approvals {
            Some(args::Approvals::Ask) if !self.has_keys && args.server.is_none() => bail!(
                "nobody could answer: without --server, approvals are asked for in a terminal only; name a server, or leave \
                 out --approvals ask"
            ),
            Some(args::Approvals::Ask) => Ok(ApprovalMode::Ask),
            None if self.has_keys => Ok(ApprovalMode::Ask),
            Some(args::Approvals::Deny) | None => Ok(ApprovalMode::Deny),
        }
    }

    /// With how somebody can answer where nobody can do so here.
    fn permissions(self, mode: ApprovalMode, args: &args::Chat, id: &ConversationId) -> Permissions {
        let elsewhere = args.server.as_ref().filter(|_| !self.has_keys);
        let elsewhere = elsewhere.map(|server| {
            format!(
                "It waits for an answer: on the page of {server}, or with POST /conversations/{id}/approvals."
            )
        });
        Permissions { mode, elsewhere }
    }

    fn view(self, args: &args::Chat) -> Box<dyn View> {
        match self.is_live {
            true => Box::new(Live::new(io::stdout(), printer::columns, self.has_keys, args.show_reasoning)),
            false => {
                let is_terminal = io::stdout().is_terminal();
                Box::new(Plain::new(io::stdout(), io::stderr(), is_terminal, args.show_reasoning))
            }
        }
    }
}

/// A conversation in the terminal.
struct Chat {
    conversation_id: ConversationId,
    model: Option<String>,
    link: Link,
    /// Where it is, and what it is shown.
    server: (Address, Option<Hidden>),
    view: Box<dyn View>,
    terminal: Terminal,
    permissions: Permissions,
    last: Last,
    /// What was typed during the last turn and not sent.
    draft: String,
}

/// What can be asked again.
#[derive(Default)]
struct Last {
    /// The last turn, if it failed or was stopped.
    failed: Option<TurnId>,
    /// The `seq` of the last message.
    message: Option<u64>,
}

impl Last {
    /// How the turn that a line asks for begins, and the command for it; else why there is none.
    fn beginning(&self, order: Order) -> Result<(Beginning, Start), &'static str> {
        match order {
            Order::Say(text) => Ok((Beginning::Message(text.clone()), Start::Say(text))),
            Order::Retry(_) => match (&self.failed, self.message) {
                (Some(turn), _) => Ok((Beginning::Again, Start::Turn(turn.clone()))),
                (None, Some(seq)) => Ok((Beginning::Again, Start::Message(seq, None))),
                (None, None) => Err("Nothing to retry: nothing was asked yet."),
            },
            Order::Answer(_) => Err(NOT_ASKED),
            Order::Edit(text) => match self.message {
                Some(seq) => Ok((Beginning::Message(text.clone()), Start::Message(seq, Some(text)))),
                None => Err("Nothing to edit: nothing was asked yet."),
            },
        }
    }
}

impl Chat {
    /// Sends a line and shows what comes of it, and of what is queued meanwhile. With `once`, a person who interrupts it
    /// is done.
    async fn say(&mut self, line: String, once: bool, interrupt: &mut Interrupt) -> Result<Ending> {
        let mut keys = match self.terminal.has_keys {
            true => Keys::of_terminal(interrupt)?,
            false => Keys::none(interrupt),
        };
        let (link, view) = (&mut self.link, self.view.as_mut());
        let mut asked = self.model.clone();
        // A message on the command line is one, whatever it begins with.
        let order = if once { Order::Say(line) } else { Order::of(&line) };
        if let Order::Retry(Some(model)) = &order {
            asked = Some(model.clone());
        }
        let (beginning, start) = match self.last.beginning(order) {
            Ok(begins) => begins,
            Err(why) => {
                view.line(&view::Line::Error(why.to_owned()))?;
                return Ok(Ending::Refused);
            }
        };
        let mut turn = Turn::expect(beginning, &self.conversation_id, link, view, &self.permissions)?;
        turn.start(start, asked.clone()).await?;
        let mut queued = VecDeque::new();
        let ending = loop {
            let shown = turn.run(&mut keys).await?;
            let is_over = matches!(shown.ending, Ending::Failed | Ending::Cancelled | Ending::Interrupted);
            if shown.was_moved {
                // The conversation stays with what the turn was moved to.
                asked = None;
            }
            if shown.ending != Ending::Refused {
                self.model.clone_from(&asked);
                self.last.failed = shown.turn_id.filter(|_| is_over);
                self.last.message = shown.message.or(self.last.message);
            }
            queued.extend(shown.queued);
            let is_done = shown.ending == Ending::Refused || (once && shown.ending == Ending::Interrupted);
            let Some(next) = queued.pop_front().filter(|_| !is_done) else { break shown.ending };
            if self.terminal.is_live {
                writeln!(io::stdout())?;
            }
            self.view.line(&view::Line::Note(format!("> {}", wording::one_line(&next, QUEUED))))?;
            let (link, view) = (&mut self.link, self.view.as_mut());
            turn =
                Turn::expect(Beginning::Message(next), &self.conversation_id, link, view, &self.permissions)?;
        };
        self.draft = keys.draft().text().to_owned();
        Ok(ending)
    }

    /// Message by message, until the input ends.
    async fn converse(&mut self, name: &str, interrupt: &mut Interrupt) -> Result<ExitCode> {
        let greeting = format!(
            "everturn {} \u{b7} {name}\nEnter sends, Ctrl-C stops an answer, Ctrl-D leaves. {RETRY} asks again, {EDIT} TEXT\nreplaces your last message, /settings tunes retries, /tools lists tools.",
            env!("CARGO_PKG_VERSION")
        );
        self.note(&greeting)?;
        let prompt = Prompt::start()?;
        loop {
            writeln!(io::stdout())?;
            match self.ask(&prompt, interrupt).await? {
                Answer::Interrupted => return Ok(INTERRUPTED.into()),
                Answer::End => return Ok(ExitCode::SUCCESS),
                Answer::Message(text) => match text.trim() {
                    "" => {}
                    text if settings::asked(text).is_some() => self.settings(text).await?,
                    text if allowed::asked(text).is_some() => self.allowed(text).await?,
                    text if tools::is_asked(text) => self.tools().await?,
                    text => {
                        let ending = self.say(text.to_owned(), false, interrupt).await?;
                        if self.last.failed.is_some() && ending == Ending::Failed {
                            self.note(&format!("{RETRY} asks again, {RETRY} MODEL asks another model."))?;
                        }
                    }
                },
            }
        }
    }

    /// Shows or changes the retry settings, if a line asks for that.
    async fn settings(&mut self, line: &str) -> Result<()> {
        let (address, token) = &self.server;
        let told = match settings::asked(line) {
            Some(Ok(asked)) => settings::answer(asked, &self.conversation_id, address, token.as_ref()).await,
            Some(Err(error)) => Err(error),
            None => return Ok(()),
        };
        let line = told.map_or_else(|error| view::Line::Error(error.to_string()), view::Line::Note);
        Ok(self.view.line(&line)?)
    }

    /// Lists the tools that models are offered.
    async fn tools(&mut self) -> Result<()> {
        let (address, token) = &self.server;
        let told = tools::answer(address, token.as_ref()).await;
        let line = told.map_or_else(|error| view::Line::Error(error.to_string()), view::Line::Note);
        Ok(self.view.line(&line)?)
    }

    /// Lists or revokes what is allowed, if a line asks for that.
    async fn allowed(&mut self, line: &str) -> Result<()> {
        let (address, token) = &self.server;
        let Some(asked) = allowed::asked(line) else { return Ok(()) };
        let told = allowed::answer(asked, &self.conversation_id, address, token.as_ref()).await;
        let line = told.map_or_else(|error| view::Line::Error(error.to_string()), view::Line::Note);
        Ok(self.view.line(&line)?)
    }

    /// The next message. Meanwhile the connection is listened to: a server hangs up on a client that does not answer.
    async fn ask(&mut self, prompt: &Prompt, interrupt: &mut Interrupt) -> Result<Answer> {
        let answer = prompt.next(std::mem::take(&mut self.draft));
        tokio::pin!(answer);
        loop {
            let news = tokio::select! {
                answer = &mut answer => return answer,
                () = interrupt.next() => {
                    key::restore();
                    writeln!(io::stdout())?;
                    return Ok(Answer::Interrupted);
                }
                news = self.link.next() => news,
            };
            // The prompt has the terminal still.
            drop(news.inspect_err(|_| key::restore())?);
        }
    }

    fn say_how_to_go_on(&mut self, server: &str) -> Result<()> {
        if self.terminal.is_live {
            self.note(&format!(
                "Continue with: everturn chat --server {server} --conversation {}",
                self.conversation_id
            ))?;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> Result<()> {
        Ok(self.view.line(&view::Line::Note(text.to_owned()))?)
    }
}
