//! Shows one turn according to its events.

mod compaction;
mod ending;
mod permission;
mod report;
mod shown;

use std::{
    collections::{HashMap, VecDeque},
    io,
    time::Duration,
};

use everturn_wire::{
    AgentEvent, Because, Command, CompactionCause, ConversationId, DoneReason, EventBody, FinalReport,
    RetryOutcome, RetryPhase, RetryState, TurnId, Verdict,
};
use tokio::time::Instant;

use super::approval::{Approvals, Choice, Request};
use super::question::Questions;
use super::view::{Count, Line, Silence, Status, View, Wait};
use crate::{calendar::Calendar, decision, failure_summary::FailureSummary, remote::Clock, wording};
pub(super) use ending::Ending;

/// Maximum length of a tool's displayed arguments, and of its result, in characters.
const ARGUMENTS: usize = 60;
const RESULT: usize = 80;

/// Maximum length of the displayed message that began a running turn, in characters.
const MESSAGE: usize = 300;

/// Maximum length of a reviewer's displayed reason, in characters.
const RATIONALE: usize = 300;

/// How a turn begins; tells it apart from other turns of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With this message.
    Message(String),
    /// With the same history, without a new message.
    Again,
    /// It is already running, however it began.
    Running,
}

/// A queued message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// The server's id for it.
    pub(super) id: String,
    pub(super) text: String,
    /// Whether the server is known to have it.
    pub(super) is_there: bool,
    /// Whether the connection was lost before that was known.
    pub(super) may_be_lost: bool,
    /// Whether to withdraw it once it is there.
    pub(super) is_unwanted: bool,
}

impl Queued {
    /// Says that it could not be withdrawn.
    pub(super) fn too_late(&self) -> Line {
        Line::Note(format!("Too late, already sent: {}", wording::one_line(&self.text, MESSAGE)))
    }
}

/// The state of a step's retries.
#[derive(Clone, Debug)]
enum Chain {
    Waiting(Wait),
    Asking(Count),
}

/// The state of one turn as told by its events so far.
pub(super) struct Story {
    beginning: Beginning,
    /// Whether the server may not have been asked for it, because the connection was lost.
    pub(super) may_be_lost: bool,
    pub(super) id: Option<TurnId>,
    clock: Clock,
    chain: Option<Chain>,
    /// Whether the provider is known to be silent.
    is_silent: bool,
    /// Why the turn waits, as was said last.
    because: Option<Because>,
    /// Whether anything of the step was shown.
    is_shown: bool,
    /// Retries of the current step, and of all steps.
    step_retries: u32,
    retries: u32,
    /// Number of finished steps.
    steps: u64,
    last_failure: String,
    /// How the latest series of retries ended.
    outcome: Option<RetryOutcome>,
    /// The running tools, by call id.
    calls: HashMap<String, String>,
    pub(super) approvals: Approvals,
    pub(super) questions: Questions,
    /// The tools of calls under review, by call id.
    reviews: HashMap<String, String>,
    /// Why earlier messages are being summarized; afterwards the model is asked for the answer.
    compaction: Option<CompactionCause>,
    error: String,
    failure_summary: FailureSummary,
    reason: Option<DoneReason>,
    took: Option<Duration>,
    /// This terminal's queued messages.
    pub(super) queued: VecDeque<Queued>,
    /// Whether the person at this terminal ended the turn.
    pub(super) interrupted: bool,
    /// Whether the person at this terminal ended the turn or cancelled its retries.
    pub(super) is_ended_here: bool,
    /// The `seq` of the message that began the turn, if there was one.
    pub(super) message: Option<u64>,
    /// The turn's final report, if one was required.
    pub(super) report: Option<Box<FinalReport>>,
    /// Whether it was sealed, perhaps to be replaced by a successor; the next event shows which.
    is_sealed: bool,
}

impl Story {
    pub(super) fn of(beginning: Beginning, clock: Clock) -> Self {
        Self {
            beginning,
            may_be_lost: false,
            id: None,
            clock,
            chain: None,
            is_silent: false,
            because: None,
            is_shown: false,
            step_retries: 0,
            retries: 0,
            steps: 0,
            last_failure: String::new(),
            outcome: None,
            calls: HashMap::new(),
            approvals: Approvals::default(),
            questions: Questions::default(),
            reviews: HashMap::new(),
            compaction: None,
            error: String::new(),
            failure_summary: FailureSummary::default(),
            reason: None,
            took: None,
            queued: VecDeque::new(),
            interrupted: false,
            is_ended_here: false,
            message: None,
            report: None,
            is_sealed: false,
        }
    }

    /// Processes an event and shows it. Returns how the turn ended, once it has.
    pub(super) fn take(&mut self, event: AgentEvent, view: &mut dyn View) -> io::Result<Option<Ending>> {
        if let EventBody::QueueChanged { queue } = &event.body {
            for queued in &mut self.queued {
                queued.is_there |= queue.iter().any(|message| message.message_id == queued.id);
                queued.may_be_lost &= !queued.is_there;
            }
        }
        if self.id.is_none() {
            if self.is_beginning(&event.body) {
                self.id = event.turn_id;
                if let (Beginning::Running, EventBody::UserMessage { text }) = (&self.beginning, &event.body)
                {
                    view.line(&Line::Note(format!("> {}", wording::one_line(text, MESSAGE))))?;
                }
                view.status(Status::Asking)?;
            }
            return Ok(None);
        }
        if self.is_sealed {
            return match self.goes_on_with(&event) {
                true => self.go_on(event.turn_id, view).map(|()| None),
                false => self.end(view).map(Some),
            };
        }
        match event.body {
            EventBody::TurnSealed
                if event.turn_id == self.id
                    && self.reason == Some(DoneReason::Aborted)
                    && !self.is_ended_here =>
            {
                self.is_sealed = true;
            }
            // A status belongs to the conversation and names no turn: it is about the running one.
            EventBody::Status { retry: Some(retry), .. } => self.asking_again(&retry, view)?,
            _ if event.turn_id != self.id => {}
            EventBody::TurnSealed => return self.end(view).map(Some),
            body => {
                self.show(body, view)?;
                // A request for approval stays visible, whatever else happens.
                self.show_asked(view)?;
            }
        }
        Ok(None)
    }

    /// Whether it was sealed; only the next event shows whether a successor continues it.
    pub(super) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Whether this event begins the successor of this turn.
    pub(super) fn goes_on_with(&self, event: &AgentEvent) -> bool {
        matches!(&event.body, EventBody::TurnStart { retry_of, .. } if *retry_of == self.id)
    }

    /// Continues with the successor after a person moved the turn to another model.
    fn go_on(&mut self, id: Option<TurnId>, view: &mut dyn View) -> io::Result<()> {
        (self.id, self.is_sealed, self.reason, self.outcome) = (id, false, None, None);
        (self.compaction, self.report) = (None, None);
        self.on_step();
        view.line(&Line::Note("Moved to another model.".to_owned()))?;
        view.status(Status::Asking)
    }

    fn is_beginning(&self, body: &EventBody) -> bool {
        match (&self.beginning, body) {
            (Beginning::Message(message), EventBody::UserMessage { text }) => text == message,
            (Beginning::Again, EventBody::TurnStart { retry_of, .. }) => retry_of.is_some(),
            (Beginning::Running, EventBody::UserMessage { .. } | EventBody::TurnStart { .. }) => true,
            _ => false,
        }
    }

    /// Whether it is said to be running.
    pub(super) fn is_watched(&self) -> bool {
        self.beginning == Beginning::Running
    }

    /// Whether none of its events have arrived, and perhaps none will.
    pub(super) fn is_awaited(&self) -> bool {
        self.id.is_none() && (self.is_watched() || self.may_be_lost)
    }

    /// Returns a queued message that can be withdrawn now and is to be.
    pub(super) fn withdraw(&mut self) -> Option<Queued> {
        let queued = self.queued.iter_mut().rfind(|queued| queued.is_there && queued.is_unwanted)?;
        queued.is_unwanted = false;
        Some(queued.clone())
    }

    /// Whether retries are in progress that can be cancelled.
    pub(super) fn is_retrying(&self) -> bool {
        self.chain.is_some()
    }

    /// Whether the provider can be asked again at once: during a wait, or if it is silent and nothing was shown.
    pub(super) fn may_ask_now(&self) -> bool {
        match &self.chain {
            Some(Chain::Waiting(wait)) => !wait.of_caller && wait.until > Instant::now(),
            _ => self.is_silent && !self.is_shown,
        }
    }

    /// Updates the status when the person asks for an immediate retry.
    pub(super) fn ask_now(&mut self, view: &mut dyn View) -> io::Result<()> {
        self.is_silent = false;
        match &mut self.chain {
            Some(Chain::Waiting(wait)) => {
                wait.until = Instant::now();
                view.status(Status::Retrying(wait.clone()))
            }
            _ => view.status(self.asking()),
        }
    }

    /// Shows the current status again after reconnecting.
    pub(super) fn resume(&mut self, view: &mut dyn View) -> io::Result<()> {
        self.approvals.reopen();
        self.questions.reopen();
        self.may_be_lost |= self.id.is_none();
        for queued in &mut self.queued {
            queued.may_be_lost |= !queued.is_there;
        }
        view.status(match &self.chain {
            Some(Chain::Waiting(wait)) => Status::Retrying(wait.clone()),
            Some(Chain::Asking(count)) => {
                Status::AskingAgain { count: *count, of_summary: self.compaction.is_some() }
            }
            None => self.asking(),
        })?;
        self.show_asked(view)
    }

    /// Shows the question or the request for approval that waits. One at a time, so that a typed line cannot be meant for both.
    fn show_asked(&mut self, view: &mut dyn View) -> io::Result<()> {
        if !self.approvals.is_shown() {
            self.questions.show(view)?;
        }
        if self.questions.is_open() { Ok(()) } else { self.approvals.show(view) }
    }

    /// Shows that the wait is over, perhaps early.
    fn asking_again(&mut self, retry: &RetryState, view: &mut dyn View) -> io::Result<()> {
        if retry.phase != RetryPhase::Asking {
            return Ok(());
        }
        let is_shared = retry.shared == Some(true);
        let count = Count { attempt: retry.attempt, of: retry.max_attempts, is_shared };
        self.chain = Some(Chain::Asking(count));
        view.status(Status::AskingAgain { count, of_summary: self.compaction.is_some() })
    }

    /// Updates the state when a part of the answer arrives.
    fn on_content(&mut self) {
        self.chain = None;
        self.is_silent = false;
        self.is_shown = true;
    }

    /// Updates the state when a step begins or restarts.
    fn on_step(&mut self) {
        self.is_silent = false;
        self.is_shown = false;
    }

    fn silence(&mut self, silent_ms: u64, gives_up_at: Option<u64>, view: &mut dyn View) -> io::Result<()> {
        self.is_silent = true;
        let now = Instant::now();
        let since = now.checked_sub(Duration::from_millis(silent_ms)).unwrap_or(now);
        let gives_up = gives_up_at.map(|at| Calendar::of_process().brief(self.clock.here(at)));
        view.status(Status::Silent(Silence { since, gives_up, may_ask_again: !self.is_shown }))
    }
}

#[cfg(test)]
mod tests;
