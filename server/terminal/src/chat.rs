//! `everturn chat`: a conversation in the terminal.

mod allowed;
mod approval;
mod attachment;
mod conversations;
mod conversing;
mod directory;
mod fallback;
mod host;
mod key;
mod link;
mod message;
mod model;
mod model_settings;
mod moving;
mod order;
mod place;
mod prompt;
mod question;
mod run;
mod server;
mod settings;
mod story;
mod tools;
mod turn;
mod view;

use std::{
    collections::VecDeque,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use everturn_wire::ConversationId;

use crate::{Interrupt, args, printer, wording};
use host::{Found, Last};
pub use host::{Host, Kept, Private, Resume};
use key::{Keys, Quiet};
use link::Link;
use moving::Destination;
use order::Order;
use place::Terminal;
pub use run::run_once;
use story::{Beginning, Ending, Queued};
use turn::{NOT_ASKED, Permissions, QUEUED, Start, Turn};
use view::{Line, View};

/// Exit code after an interruption by the person.
const INTERRUPTED: u8 = 130;

/// Runs a conversation through the server that `host` finds or starts, until the person or the input ends it.
///
/// # Errors
/// When it cannot begin, or the server connection is lost.
pub async fn run(args: &args::Chat, host: impl AsyncFnOnce() -> Result<Host>) -> Result<ExitCode> {
    let terminal = if args.json { Terminal::NONE } else { Terminal::of_process() };
    let mode = terminal.approvals(args)?;
    let message = message::of(args, terminal.is_live)?;
    let mut interrupt = Interrupt::listen()?;
    key::restore_on_panic();
    let _quiet = terminal.has_keys.then(Quiet::enter);
    let host = host().await?;
    let found = host.conversation(args).await?;
    let link = Link::open(&host.server, args.json).await?;
    let permissions = terminal.permissions(mode, args, &found.id);
    let (model, view) = (args.model.clone(), terminal.view(args));
    let Found { id: conversation_id, last, is_active, is_new } = found;
    let (draft, queued) = (String::new(), VecDeque::new());
    let mut chat = Chat {
        conversation_id,
        model,
        link,
        host,
        view,
        terminal,
        permissions,
        last,
        queued,
        draft,
        is_begun: false,
        leaves: false,
        moves: None,
        has_moved: false,
    };
    for line in chat.host.notes.clone() {
        chat.view.line(&Line::Warning(line))?;
    }
    let ended = match message {
        Some(message) => chat.say_once(message, is_active, &mut interrupt).await,
        None => chat.converse(is_active, is_new, &mut interrupt).await,
    };
    if args.json { printer::unless_closed(ended) } else { ended }
}

fn exit_code(ending: Ending) -> ExitCode {
    match ending {
        Ending::Answered | Ending::Left => ExitCode::SUCCESS,
        Ending::Failed | Ending::Refused | Ending::Cancelled => ExitCode::FAILURE,
        Ending::Interrupted => INTERRUPTED.into(),
    }
}

/// A conversation in the terminal.
struct Chat {
    conversation_id: ConversationId,
    /// The chosen model or route; `None`: that of the conversation, or the server's default.
    model: Option<String>,
    link: Link,
    host: Host,
    view: Box<dyn View>,
    terminal: Terminal,
    permissions: Permissions,
    last: Last,
    /// Queued messages.
    queued: VecDeque<Queued>,
    /// The unsent draft from the last turn.
    draft: String,
    /// Whether any turn has begun.
    is_begun: bool,
    /// Whether the person asked to leave as the last turn ended.
    leaves: bool,
    /// The conversation that was chosen while a turn was shown.
    moves: Option<Destination>,
    /// Whether the conversation is another one than at the start.
    has_moved: bool,
}

impl Last {
    /// How the requested turn begins and the command for it, or why it cannot begin.
    fn beginning(&self, order: Order) -> Result<(Beginning, Start), String> {
        match order {
            Order::Say(text) => Ok((Beginning::Message(text.clone()), Start::Say(text, Vec::new()))),
            Order::File(path, text) => {
                let (text, images) = attachment::read(&path, &text)?;
                Ok((Beginning::Message(text.clone()), Start::Say(text, images)))
            }
            Order::Retry(_) => match (&self.failed, self.message) {
                (Some(turn), _) => Ok((Beginning::Again, Start::Turn(turn.clone()))),
                (None, Some(seq)) => Ok((Beginning::Again, Start::Message(seq, None))),
                (None, None) => Err("Nothing to retry: nothing was asked yet.".to_owned()),
            },
            Order::Edit(text) => match self.message {
                Some(seq) => Ok((Beginning::Message(text.clone()), Start::Message(seq, Some(text)))),
                None => Err("Nothing to edit: nothing was asked yet.".to_owned()),
            },
            // The others do not begin a turn.
            _ => Err(NOT_ASKED.to_owned()),
        }
    }
}

impl Chat {
    /// Sends the only message, after any turn that is already running.
    async fn say_once(
        &mut self,
        message: String,
        is_active: bool,
        interrupt: &mut Interrupt,
    ) -> Result<ExitCode> {
        if is_active {
            let ending = self.watch(true, interrupt).await?;
            if matches!(ending, Ending::Refused | Ending::Interrupted | Ending::Left) {
                return Ok(exit_code(ending));
            }
        }
        let ending = self.begin(Order::Say(message), true, interrupt).await?;
        self.say_what_was_not_sent()?;
        if !self.draft.trim().is_empty() {
            self.note(&format!("Not sent: {}", self.draft.trim()))?;
        }
        if ending == Ending::Left || (ending != Ending::Refused && self.host.kept.is_at_server()) {
            self.say_how_to_go_on()?;
        }
        Ok(exit_code(ending))
    }

    /// Resumes a turn that already runs or waits, and shows it.
    async fn watch(&mut self, once: bool, interrupt: &mut Interrupt) -> Result<Ending> {
        self.show((Beginning::Running, Start::Watch), None, once, interrupt).await
    }

    /// Shows a turn that only summarizes, and begins at this cursor. It is not one to try again.
    async fn show_compaction(&mut self, cursor: String, interrupt: &mut Interrupt) -> Result<Ending> {
        let (failed, message) = (self.last.failed.take(), self.last.message);
        let ending = self.show((Beginning::Running, Start::From(cursor)), None, false, interrupt).await?;
        self.last = Last { failed, message };
        Ok(ending)
    }

    /// Begins a turn and shows it and those queued meanwhile. With `once`, no queued turn follows an interrupted one.
    async fn begin(&mut self, order: Order, once: bool, interrupt: &mut Interrupt) -> Result<Ending> {
        let model = match &order {
            Order::Retry(Some(model)) => Some(model.clone()),
            _ => self.model.clone(),
        };
        match self.last.beginning(order) {
            Ok(begins) => self.show(begins, model, once, interrupt).await,
            Err(why) => {
                self.view.line(&Line::Error(why))?;
                Ok(Ending::Refused)
            }
        }
    }

    async fn show(
        &mut self,
        (beginning, start): (Beginning, Start),
        mut model: Option<String>,
        once: bool,
        interrupt: &mut Interrupt,
    ) -> Result<Ending> {
        let mut keys = match self.terminal.has_keys {
            true => Keys::of_terminal(interrupt)?,
            false => Keys::none(interrupt),
        };
        let (link, view) = ((&mut self.link, &self.host.server), self.view.as_mut());
        let is_watched = beginning == Beginning::Running;
        let mut turn = Turn::expect(beginning, &self.conversation_id, link, view, &self.permissions)?;
        turn.start(start, model.clone()).await?;
        if is_watched {
            self.host.resume(&self.conversation_id).await?;
        }
        let ending = loop {
            let shown = turn.run(&mut keys).await?;
            let is_over = matches!(shown.ending, Ending::Failed | Ending::Cancelled | Ending::Interrupted);
            // A model chosen during the turn stays chosen.
            model = shown.chosen.clone().or(model);
            if shown.ending != Ending::Refused || shown.chosen.is_some() {
                self.model.clone_from(&model);
            }
            if shown.ending != Ending::Refused {
                self.is_begun = true;
                self.host.server.first.taken();
                self.last.failed = shown.turn_id.filter(|_| is_over);
                self.last.message = shown.message.or(self.last.message);
            }
            self.queued = shown.queued;
            self.moves = shown.moves;
            let is_done = matches!(shown.ending, Ending::Refused | Ending::Left)
                || (once && shown.ending == Ending::Interrupted);
            let next = if is_done { None } else { self.queued.pop_front() };
            let Some(next) = next else { break shown.ending };
            if self.terminal.is_live {
                writeln!(io::stdout())?;
            }
            if next.is_unwanted {
                self.view.line(&next.too_late())?;
            }
            let text = next.text;
            self.view.line(&Line::Note(format!("> {}", wording::one_line(&text, QUEUED))))?;
            let (link, view) = ((&mut self.link, &self.host.server), self.view.as_mut());
            let beginning = Beginning::Message(text);
            turn = Turn::expect(beginning, &self.conversation_id, link, view, &self.permissions)?;
            turn.before(std::mem::take(&mut self.queued), next.may_be_lost);
        };
        (self.draft, self.leaves) = keys.end();
        Ok(ending)
    }

    /// Lists queued messages that are lost: those of a private server exist only in this process.
    fn say_what_was_not_sent(&mut self) -> Result<()> {
        let queued = std::mem::take(&mut self.queued);
        if self.host.kept.is_at_server() {
            return Ok(());
        }
        for Queued { text, .. } in queued {
            self.note(&format!("Not sent: {}", wording::one_line(&text, QUEUED)))?;
        }
        Ok(())
    }

    /// In a terminal, says how to continue this conversation later.
    fn say_how_to_go_on(&mut self) -> Result<()> {
        let words = match &self.host.kept {
            _ if !self.terminal.is_live => return Ok(()),
            Kept::AtServer(server) => {
                format!("everturn chat --server {server} --conversation {}", self.conversation_id)
            }
            Kept::Here(words) if self.has_moved => {
                format!("{words} --conversation {}", self.conversation_id)
            }
            Kept::Here(words) => format!("{words} --continue"),
            Kept::Nowhere => return Ok(()),
        };
        Ok(self.view.line(&Line::Command { remark: "Continue with:", command: words })?)
    }

    fn note(&mut self, text: &str) -> Result<()> {
        Ok(self.view.line(&Line::Note(text.to_owned()))?)
    }
}
