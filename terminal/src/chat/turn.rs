//! One turn, from the message to its end: events in, keys in, a view out.

use std::{collections::VecDeque, time::Duration};

use anyhow::Result;
use everturn_console::wording;
use everturn_wire::{
    AfterContent, ApprovalMode, Command, ConversationId, FinalReport, RequiredReport, RetrySettings,
    ServerMessage, TurnId,
};
use tokio::time::{Instant, sleep};

use super::{
    approval::Choice,
    key::{Acts, Key, Keys},
    link::{Link, News, TRIES},
    order::Order,
    story::{Beginning, Ending, Story},
    view::{Line, Status, View},
};

/// How often what depends on the time is looked at.
const REFRESH: Duration = Duration::from_millis(100);

/// The most characters that are shown of a queued message.
const QUEUED: usize = 80;

/// What is said to an answer that nobody asked for.
pub(super) const NOT_ASKED: &str = "No call waits for approval.";

/// How long a turn may take to end after it was told to.
const PATIENCE: Duration = Duration::from_secs(3);

/// A turn that is shown while it runs.
pub(super) struct Turn<'a> {
    pub(super) conversation_id: &'a ConversationId,
    pub(super) link: &'a mut Link,
    pub(super) view: &'a mut dyn View,
    permissions: &'a Permissions,
    story: Story,
    /// When it was told to end.
    stopping: Option<Instant>,
    /// A retry was cancelled, and nothing came of it yet.
    cancelling: bool,
}

/// What came of a turn.
pub(super) struct Shown {
    pub(super) ending: Ending,
    /// The turn; none when it never began.
    pub(super) turn_id: Option<TurnId>,
    /// The `seq` of the message that it began with, if it did.
    pub(super) message: Option<u64>,
    /// It went on with another model or route than it began with.
    pub(super) was_moved: bool,
    /// The report that it ended with, if it had to.
    pub(super) report: Option<Box<FinalReport>>,
    /// Messages that were queued meanwhile, each of which begins a turn.
    pub(super) queued: VecDeque<String>,
}

/// What becomes of the calls that need a person's approval.
#[derive(Clone, Debug)]
pub(super) struct Permissions {
    pub(super) mode: ApprovalMode,
    /// How somebody can answer where nobody can do so here.
    pub(super) elsewhere: Option<String>,
}

/// The command that a turn begins with.
pub(super) enum Start {
    Say(String),
    /// The same, for a turn that must end with a report.
    Report(String, Box<RequiredReport>),
    /// That turn again.
    Turn(TurnId),
    /// The message with this `seq` again, or another text in its place.
    Message(u64, Option<String>),
}

impl<'a> Turn<'a> {
    /// One that will begin, or has begun, in this way.
    pub(super) fn expect(
        beginning: Beginning,
        conversation_id: &'a ConversationId,
        link: &'a mut Link,
        view: &'a mut dyn View,
        permissions: &'a Permissions,
    ) -> Result<Self> {
        let mut story = Story::of(beginning, link.clock());
        story.approvals.elsewhere.clone_from(&permissions.elsewhere);
        view.begin()?;
        view.status(Status::Asking)?;
        Ok(Self { conversation_id, link, view, permissions, story, stopping: None, cancelling: false })
    }

    /// Sends the command that it begins with, for this model if one is named.
    pub(super) async fn start(&mut self, start: Start, model: Option<String>) -> Result<()> {
        let (conversation_id, extensions) = (self.conversation_id.clone(), Some(true));
        // The terminal says that the answer starts again.
        let retry = Some(Box::new(RetrySettings {
            after_content: Some(AfterContent::Rewind),
            ..RetrySettings::default()
        }));
        // Else as in the turn that is repeated: a person is there.
        let approvals = Some(self.permissions.mode).filter(|mode| *mode == ApprovalMode::Deny);
        let again = |turn_id, seq, message, model, retry| Command::ChatRetry {
            conversation_id: conversation_id.clone(),
            turn_id,
            seq,
            message,
            model,
            retry,
            approvals,
            extensions,
        };
        let say = |message, final_report, retry| Command::ChatSend {
            conversation_id: Some(conversation_id.clone()),
            message,
            model: model.clone(),
            images: None,
            reasoning_effort: None,
            retry,
            approvals: Some(self.permissions.mode),
            final_report,
            extensions,
        };
        let command = match start {
            Start::Say(message) => say(message, None, retry),
            Start::Report(message, report) => say(message, Some(report), retry),
            Start::Turn(turn_id) => again(Some(turn_id), None, None, model, retry),
            Start::Message(seq, message) => again(None, Some(seq), message, model, retry),
        };
        self.link.send(command).await
    }

    /// Shows it to its end.
    pub(super) async fn run(mut self, keys: &mut Keys<'_>) -> Result<Shown> {
        let ended = self.follow(keys).await;
        self.view.draft("", 0)?;
        self.view.end()?;
        let (ending, turn_id) = (ended?, self.story.id.clone());
        let (message, was_moved) = (self.story.message, self.story.was_moved);
        let report = self.story.report.take();
        Ok(Shown { ending, turn_id, message, was_moved, report, queued: self.story.into_queued() })
    }

    async fn follow(&mut self, keys: &mut Keys<'_>) -> Result<Ending> {
        loop {
            let acts = Acts {
                asks_now: self.story.may_ask_now(),
                answers: self.story.approvals.may_answer() && self.stopping.is_none(),
            };
            let ended = tokio::select! {
                news = self.link.next() => self.hear(news?)?,
                key = keys.next(acts) => {
                    let draft = keys.draft();
                    self.view.draft(draft.text(), draft.cursor())?;
                    self.press(key).await?
                }
                () = sleep(REFRESH) => {
                    self.view.refresh()?;
                    let overdue = self.stopping.is_some_and(|since| since.elapsed() > PATIENCE);
                    overdue.then_some(Ending::Interrupted)
                }
            };
            if let Some(ending) = ended {
                return Ok(ending);
            }
        }
    }

    fn hear(&mut self, news: News) -> Result<Option<Ending>> {
        match news {
            News::Lost(tried) => self.view.status(Status::Reconnecting { tried, of: TRIES })?,
            News::Back => self.story.resume(self.view)?,
            News::Said(message) => match *message {
                ServerMessage::ChatDelta { event, cursor }
                    if event.conversation_id == *self.conversation_id =>
                {
                    if self.story.is_sealed() && !self.story.goes_on_with(&event) {
                        // It belongs to what comes next.
                        let message = ServerMessage::ChatDelta { event: event.clone(), cursor };
                        self.link.put_back(News::Said(Box::new(message)));
                    }
                    return Ok(self.story.take(event, self.view)?);
                }
                ServerMessage::ChatError { message, .. } | ServerMessage::Error { message } => {
                    self.view.end()?;
                    self.view.line(&Line::Error(message))?;
                    return Ok(Some(Ending::Refused));
                }
                _ => {}
            },
        }
        Ok(None)
    }

    async fn press(&mut self, key: Key) -> Result<Option<Ending>> {
        let conversation_id = self.conversation_id.clone();
        match key {
            Key::Edited => {}
            Key::Answer(choice) => self.answer(choice).await?,
            Key::Send(text) => return self.order(text).await,
            Key::RetryNow => {
                self.story.ask_now(self.view)?;
                self.link.send(Command::RetryNow { conversation_id, model: None }).await?;
            }
            Key::Cancel if self.stopping.is_some() => {}
            // A second time, if the first came too late: then the answer is stopped.
            Key::Cancel if self.story.is_retrying() && !self.cancelling => {
                self.cancelling = true;
                self.story.is_ended_here = true;
                self.link.send(Command::RetryAbort { conversation_id }).await?;
            }
            Key::Cancel => self.stop(conversation_id).await?,
            Key::Stop if self.story.interrupted => return Ok(Some(Ending::Interrupted)),
            Key::Stop => {
                self.story.interrupted = true;
                self.stop(conversation_id).await?;
            }
        }
        Ok(None)
    }

    /// A line that was typed while the turn runs.
    async fn order(&mut self, line: String) -> Result<Option<Ending>> {
        let conversation_id = self.conversation_id.clone();
        match Order::of(&line) {
            Order::Retry(model) if self.story.may_ask_now() => {
                self.story.was_moved |= model.is_some();
                self.story.ask_now(self.view)?;
                self.link.send(Command::RetryNow { conversation_id, model }).await?;
            }
            Order::Answer(choice) => self.answer(choice).await?,
            Order::Retry(_) | Order::Edit(_) => {
                let why = "Not now: wait for the end of the answer, or stop it with Ctrl-C.";
                self.view.line(&Line::Note(why.to_owned()))?;
            }
            Order::Say(text) => {
                self.view.line(&Line::Note(format!("Queued: {}", wording::one_line(&text, QUEUED))))?;
                self.story.queue(text.clone());
                self.link.send(Command::ChatQueue { conversation_id, text, message_id: None }).await?;
            }
        }
        Ok(None)
    }

    /// The person answers the call that waits for approval.
    async fn answer(&mut self, choice: Choice) -> Result<()> {
        match self.story.answer(choice, self.conversation_id.clone(), self.view)? {
            Some(command) => self.link.send(command).await,
            None => Ok(self.view.line(&Line::Note(NOT_ASKED.to_owned()))?),
        }
    }

    async fn stop(&mut self, conversation_id: ConversationId) -> Result<()> {
        self.story.is_ended_here = true;
        self.stopping = Some(Instant::now());
        self.view.status(Status::Stopping)?;
        self.link.send(Command::ChatStop { conversation_id }).await
    }
}
