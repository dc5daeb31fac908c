//! One turn, from the message to its end: consumes events and keys, updates a view.

mod answering;
mod typed;

use std::{collections::VecDeque, time::Duration};

use anyhow::Result;
use everturn_wire::{
    AfterContent, ApprovalMode, Command, ConversationId, FinalReport, Image, RequiredReport, RetrySettings,
    ServerMessage, TurnId,
};
use tokio::time::{Instant, sleep};

use super::{
    approval::Choice,
    key::{Acts, Key, Keys},
    link::{Link, News, TRIES},
    moving::Destination,
    server::Server,
    story::{Beginning, Ending, Queued, Story},
    view::{Line, Status, View},
};

/// Interval at which time-dependent output is refreshed.
const REFRESH: Duration = Duration::from_millis(100);

/// Maximum length of a displayed queued message, in characters.
pub(super) const QUEUED: usize = 80;

/// How long to wait for the events of a turn that is said to be running before checking whether it has ended.
const UNSEEN: Duration = Duration::from_secs(2);

/// The reason given when a script denies a call.
const UNATTENDED: &str = "nobody is there to answer";

/// Shown when a person answers although no call waits.
pub(super) const NOT_ASKED: &str = "No call waits for approval.";

/// Shown when a person answers although no tool asks.
pub(super) const NO_QUESTION: &str = "No tool is asking a question.";

/// Shown when there is no message to withdraw.
pub(super) const NOTHING_QUEUED: &str = "No message is queued.";

/// Shown when a turn did not end in time after it was stopped.
const UNCONFIRMED: &str = "The server has not confirmed the stop: the turn may go on there.";

/// Shown when what begins a turn was lost with the connection.
const LOST: &str = "Not sent: the connection was lost before the server had it.";

/// How long a turn may take to end after it was stopped.
const PATIENCE: Duration = Duration::from_secs(3);

/// A turn shown while it runs.
pub(super) struct Turn<'a> {
    pub(super) conversation_id: &'a ConversationId,
    pub(super) link: &'a mut Link,
    pub(super) view: &'a mut dyn View,
    server: &'a Server,
    permissions: &'a Permissions,
    story: Story,
    since: Instant,
    /// A command was sent that the server may refuse without ending the turn.
    may_be_refused: bool,
    /// The model or route chosen during the turn.
    chosen: Option<String>,
    /// The conversation to go on with instead.
    moves: Option<Destination>,
    /// When it was stopped.
    stopping: Option<Instant>,
    /// A retry was cancelled, and its effect is not known yet.
    cancelling: bool,
}

/// The outcome of a turn.
pub(super) struct Shown {
    pub(super) ending: Ending,
    /// The turn; `None` if it never began.
    pub(super) turn_id: Option<TurnId>,
    /// The `seq` of the message that began it, if there was one.
    pub(super) message: Option<u64>,
    /// The model or route chosen meanwhile, for this turn or the next ones.
    pub(super) chosen: Option<String>,
    /// The turn's final report, if one was required.
    pub(super) report: Option<Box<FinalReport>>,
    /// Messages queued meanwhile, each of which begins a turn.
    pub(super) queued: VecDeque<Queued>,
    /// The conversation to go on with, if the person left for another one.
    pub(super) moves: Option<Destination>,
}

/// How calls that need approval are handled.
#[derive(Clone, Debug)]
pub(super) struct Permissions {
    pub(super) mode: ApprovalMode,
    /// Whether to deny requests of a turn that began elsewhere, because nobody else can answer them.
    pub(super) denies: bool,
    /// How else they can be answered, if not here.
    pub(super) elsewhere: Option<String>,
}

/// The command that begins a turn.
pub(super) enum Start {
    /// A message with these images and PDFs.
    Say(String, Vec<Image>),
    /// Like `Say`, for a turn that must end with a report.
    Report(String, Box<RequiredReport>),
    /// Repeat this turn.
    Turn(TurnId),
    /// Repeat the message with this `seq`, or replace its text.
    Message(u64, Option<String>),
    /// No command: the turn already runs and is watched from its start.
    Watch,
    /// No command: the turn begins at this cursor.
    From(String),
}

impl<'a> Turn<'a> {
    /// Prepares to show a turn that will begin, or has begun, in this way.
    pub(super) fn expect(
        beginning: Beginning,
        conversation_id: &'a ConversationId,
        (link, server): (&'a mut Link, &'a Server),
        view: &'a mut dyn View,
        permissions: &'a Permissions,
    ) -> Result<Self> {
        let mut story = Story::of(beginning, link.clock());
        story.approvals.elsewhere.clone_from(&permissions.elsewhere);
        view.begin()?;
        view.status(Status::Asking)?;
        Ok(Self {
            conversation_id,
            link,
            view,
            server,
            permissions,
            story,
            since: Instant::now(),
            may_be_refused: false,
            chosen: None,
            moves: None,
            stopping: None,
            cancelling: false,
        })
    }

    /// Begins by a message that was queued before these, and perhaps did not arrive.
    pub(super) fn before(&mut self, queued: VecDeque<Queued>, may_be_lost: bool) {
        (self.story.queued, self.story.may_be_lost) = (queued, may_be_lost);
    }

    /// Sends the command that begins the turn, with this model if one is given.
    pub(super) async fn start(&mut self, start: Start, model: Option<String>) -> Result<()> {
        let (conversation_id, extensions) = (self.conversation_id.clone(), Some(true));
        // The terminal can say that the answer starts again.
        let retry = Some(Box::new(RetrySettings {
            after_content: Some(AfterContent::Rewind),
            ..RetrySettings::default()
        }));
        // Otherwise as in the repeated turn, since a person is present.
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
        let say = |message, images: Vec<Image>, final_report, retry| Command::ChatSend {
            conversation_id: Some(conversation_id.clone()),
            message,
            model: model.clone(),
            images: Some(images).filter(|images| !images.is_empty()),
            reasoning_effort: None,
            model_settings: self.server.first.of(&conversation_id).map(Box::new),
            retry,
            approvals: Some(self.permissions.mode),
            priority: None,
            final_report,
            extensions,
        };
        let command = match start {
            Start::Say(message, images) => say(message, images, None, retry),
            Start::Report(message, report) => say(message, Vec::new(), Some(report), retry),
            Start::Turn(turn_id) => again(Some(turn_id), None, None, model, retry),
            Start::Message(seq, message) => again(None, Some(seq), message, model, retry),
            Start::Watch => {
                Command::ChatSubscribe { conversation_id: conversation_id.clone(), cursor: None, extensions }
            }
            Start::From(cursor) => Command::ChatSubscribe {
                conversation_id: conversation_id.clone(),
                cursor: Some(cursor),
                extensions,
            },
        };
        self.link.send(self.server.shortened(command).await?).await
    }

    /// Shows the turn until it ends.
    pub(super) async fn run(mut self, keys: &mut Keys<'_>) -> Result<Shown> {
        let ended = self.follow(keys).await;
        self.view.draft("", 0)?;
        self.view.end()?;
        let (ending, turn_id) = (ended?, self.story.id.clone());
        let (message, report) = (self.story.message, self.story.report.take());
        let (chosen, queued, moves) = (self.chosen, self.story.queued, self.moves);
        Ok(Shown { ending, turn_id, message, chosen, report, queued, moves })
    }

    async fn follow(&mut self, keys: &mut Keys<'_>) -> Result<Ending> {
        loop {
            while self.permissions.denies && self.story.approvals.is_shown() {
                self.answer(Choice::Deny(Some(UNATTENDED.to_owned()))).await?;
            }
            while let Some(unwanted) = self.story.withdraw() {
                let line = self.withdraw(unwanted).await?;
                self.view.line(&line)?;
            }
            let acts = Acts {
                asks_now: self.story.may_ask_now(),
                answers: self.story.approvals.may_answer()
                    && !self.story.questions.is_open()
                    && self.stopping.is_none(),
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
                    match overdue {
                        true => {
                            self.view.line(&Line::Warning(UNCONFIRMED.to_owned()))?;
                            Some(Ending::Interrupted)
                        }
                        false => self.look_for_it().await?,
                    }
                }
            };
            if let Some(ending) = ended {
                return Ok(ending);
            }
        }
    }

    /// Checks whether the awaited turn still runs. Its events would arrive from its start; if none do, it may have
    /// ended.
    async fn look_for_it(&mut self) -> Result<Option<Ending>> {
        if !self.story.is_awaited() || self.since.elapsed() < UNSEEN {
            return Ok(None);
        }
        self.since = Instant::now();
        if self.server.is_active(self.conversation_id).await? {
            return Ok(None);
        }
        if self.story.is_watched() {
            return Ok(Some(Ending::Answered));
        }
        self.view.line(&Line::Error(LOST.to_owned()))?;
        Ok(Some(Ending::Refused))
    }

    fn hear(&mut self, news: News) -> Result<Option<Ending>> {
        match news {
            News::Lost(tried) => self.view.status(Status::Reconnecting { tried, of: TRIES })?,
            News::Back => {
                self.since = Instant::now();
                self.story.resume(self.view)?;
            }
            News::Said(message, json) => match *message {
                ServerMessage::ChatDelta { event, cursor }
                    if event.conversation_id == *self.conversation_id =>
                {
                    if self.story.is_sealed() && !self.story.goes_on_with(&event) {
                        // The event belongs to what comes next.
                        let message = ServerMessage::ChatDelta { event: event.clone(), cursor };
                        self.link.put_back(News::Said(Box::new(message), json));
                        return Ok(self.story.take(event, self.view)?);
                    }
                    let ended = self.story.take(event, self.view)?;
                    if let Some(json) = json.filter(|_| self.story.id.is_some()) {
                        self.view.event(json.get())?;
                    }
                    return Ok(ended);
                }
                ServerMessage::ChatError { message_id: Some(id), message, .. }
                    if self.story.queued.iter().any(|queued| queued.id == id) =>
                {
                    self.not_queued(&id, message)?;
                }
                ServerMessage::ChatError { message, .. }
                    if self.may_be_refused && self.story.id.is_some() =>
                {
                    self.may_be_refused = false;
                    self.view.line(&Line::Error(message))?;
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
            Key::Leave => return Ok(Some(Ending::Left)),
            Key::RetryNow => self.ask_now(None).await?,
            Key::Cancel if self.stopping.is_some() => {}
            // Pressed a second time, if the first came too late, it stops the answer.
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

    /// Asks the provider again at once, or another one.
    async fn ask_now(&mut self, model: Option<String>) -> Result<()> {
        self.story.ask_now(self.view)?;
        self.may_be_refused = true;
        self.link.send(Command::RetryNow { conversation_id: self.conversation_id.clone(), model }).await
    }

    /// Answers the call that waits for approval.
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
