//! Shows one turn according to its events.

mod compaction;
mod ending;
mod permission;
mod report;

use std::{
    collections::{HashMap, VecDeque},
    io, mem,
    time::Duration,
};

use everturn_wire::{
    AgentEvent, Because, Command, CompactionCause, ConversationId, DoneReason, EventBody, FinalReport,
    RetryOutcome, RetryPhase, RetryState, TargetRole, TurnId, Value, Verdict,
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

/// Length from which a wait is also announced with its end.
const LONG: Duration = Duration::from_secs(3600);

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

    /// Whether it is said to be running, but none of its events have arrived.
    pub(super) fn is_awaited(&self) -> bool {
        self.beginning == Beginning::Running && self.id.is_none()
    }

    /// Whether retries are in progress that can be cancelled.
    pub(super) fn is_retrying(&self) -> bool {
        self.chain.is_some()
    }

    /// Whether the provider can be asked again at once: during a wait, or if it is silent and nothing was shown.
    pub(super) fn may_ask_now(&self) -> bool {
        match &self.chain {
            Some(Chain::Waiting(wait)) => wait.until > Instant::now(),
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
        let count = Count { attempt: retry.attempt, of: retry.max_attempts };
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

    fn show(&mut self, body: EventBody, view: &mut dyn View) -> io::Result<()> {
        match body {
            EventBody::TextDelta { delta } => {
                self.on_content();
                view.text(&delta)
            }
            EventBody::ReasoningDelta { delta } => {
                self.on_content();
                view.reasoning(&delta)
            }
            EventBody::ToolCall { tool_call_id, tool_name, input, .. } => {
                self.on_content();
                self.calls.insert(tool_call_id, call(&tool_name, &input));
                view.status(Status::Tool(wording::one_line(&tool_name, ARGUMENTS)))
            }
            EventBody::ToolResult { tool_call_id, tool_name, content, is_error, .. } => {
                self.approvals.forget(&tool_call_id);
                self.questions.forget(&tool_call_id);
                let call = self.calls.remove(&tool_call_id).unwrap_or(tool_name);
                self.on_step();
                view.line(&Line::Tool { call, result: wording::one_line(&content, RESULT), is_error })?;
                view.status(Status::Asking)
            }
            EventBody::ProviderRetry {
                attempt, delay_ms, next_at, message, max_attempts, because, ..
            } => {
                // The event may arrive late: wait only for the remaining time, and never longer than was decided.
                let delay = Duration::from_millis(delay_ms);
                let delay = next_at.map_or(delay, |at| self.clock.until(at).min(delay));
                self.retry(Count { attempt, of: max_attempts }, delay, &message, view)?;
                if because != mem::replace(&mut self.because, because)
                    && let Some(because) = because
                {
                    view.line(&Line::Note(format!("It waits because {because}.")))?;
                }
                match next_at.filter(|_| delay >= LONG) {
                    Some(at) => {
                        let at = Calendar::of_process().brief(self.clock.here(at));
                        view.line(&Line::Note(format!("The turn continues {at}.")))
                    }
                    None => Ok(()),
                }
            }
            EventBody::ProviderSilent { silent_ms, gives_up_at, .. } => {
                self.silence(silent_ms, gives_up_at, view)
            }
            EventBody::TurnStart { message_seq, .. } => {
                self.message = message_seq;
                Ok(())
            }
            EventBody::StepComplete { .. } => {
                self.steps += 1;
                Ok(())
            }
            EventBody::RetryEnded { outcome, .. } => {
                self.chain = None;
                self.outcome = Some(outcome);
                Ok(())
            }
            EventBody::Error(report) => {
                self.failure_summary = FailureSummary::of(&report);
                self.error = report.message;
                Ok(())
            }
            EventBody::Steering { text } => {
                if self.queued.front().is_some_and(|queued| queued.text == text) {
                    self.queued.pop_front();
                }
                view.line(&Line::Note(format!("> {}", wording::one_line(&text, RESULT))))
            }
            EventBody::StepRewound { reason, .. } => {
                self.on_step();
                let reason = wording::one_line(&reason, RESULT);
                view.line(&Line::Restart(format!("The answer broke off and starts again ({reason}).")))?;
                view.status(Status::Asking)
            }
            EventBody::TargetSwitched { to, role, reason, .. } => {
                let (to, reason) = (wording::one_line(&to, ARGUMENTS), wording::one_line(&reason, RESULT));
                let what = if role == TargetRole::Reviewer { "The review switched" } else { "Switched" };
                view.line(&Line::Note(format!("{what} to {to}: {reason}")))
            }
            EventBody::TargetRestored { to, .. } => {
                view.line(&Line::Note(format!("Back to {}", wording::one_line(&to, ARGUMENTS))))
            }
            body @ (EventBody::ApprovalRequested { .. }
            | EventBody::ApprovalResolved { .. }
            | EventBody::ReviewStarted { .. }
            | EventBody::ReviewCompleted { .. }) => self.permission(body, view),
            EventBody::QuestionAsked(question) => {
                self.questions.ask(*question);
                Ok(())
            }
            EventBody::QuestionSettled { question_id, outcome, .. } => {
                if let Some(told) = self.questions.settle(&question_id, outcome) {
                    view.line(&Line::Note(told))?;
                }
                view.status(Status::Asking)
            }
            body @ (EventBody::ReportMissing { .. }
            | EventBody::ReportForced { .. }
            | EventBody::FinalReport(_)) => self.on_report(body, view),
            EventBody::CompactionStarted { cause, .. } => self.compacting(cause, view),
            EventBody::CompactionCompleted { outcome, message, .. } => {
                self.compacted(outcome, message.as_deref(), view)
            }
            EventBody::Done { reason, duration_ms, .. } => {
                self.reason = Some(reason);
                self.took = duration_ms.map(Duration::from_millis);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn retry(&mut self, count: Count, delay: Duration, message: &str, view: &mut dyn View) -> io::Result<()> {
        self.on_step();
        self.retries += 1;
        self.step_retries = count.attempt.saturating_add(1);
        let failure = wording::brief(message);
        // A repeated failure is shown only once.
        if failure != self.last_failure {
            view.line(&Line::Failure(failure.clone()))?;
            self.last_failure = failure;
        }
        let now = Instant::now();
        let of_summary = self.compaction.is_some();
        let wait = Wait { count, until: now.checked_add(delay).unwrap_or(now), of_summary };
        self.chain = Some(Chain::Waiting(wait.clone()));
        view.status(Status::Retrying(wait))
    }
}

/// `name {"argument":1}`
fn call(name: &str, input: &Value) -> String {
    let arguments = if input.as_object().is_some_and(serde_json::Map::is_empty) {
        String::new()
    } else {
        input.to_string()
    };
    wording::one_line(&format!("{name} {arguments}"), ARGUMENTS)
}

#[cfg(test)]
mod tests;
