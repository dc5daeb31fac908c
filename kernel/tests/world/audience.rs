//! Someone who watches a turn and knows what must always hold.

use std::collections::HashMap;

use everturn_kernel::{Effect, Settings};
use everturn_wire::{Chunk, DoneReason, EventBody, RetryOutcome, RetryPhase, Role, StepId};

use super::{Fact, line};

/// Follows a turn as a client does (text is shown as it comes and dropped on a rewind) and as a provider does (history
/// must be well-formed whenever it is sent). Panics on the first thing that may not be.
pub(crate) struct Audience {
    settings: Settings,
    /// Events that were told, and what is not allowed after the last ones.
    prompted: bool,
    done: Option<DoneReason>,
    sealed: bool,
    errors: u32,
    /// What is on the screen, and what of it is older than the current step.
    shown: Shown,
    older: Shown,
    /// Text, reasoning or a tool call was shown of the current step's current attempt.
    content: bool,
    retries: u32,
    waited_ms: u64,
    /// Whether the last series of retries was not yet told to be over.
    retrying: bool,
    /// Whether the last retry that was scheduled still waits.
    waiting: bool,
    /// Whether that may be told once more: the answer that ended it was dropped.
    again: bool,
    history: History,
    pub(crate) rewinds: u32,
}

#[derive(Clone, Default)]
struct Shown {
    text: String,
    thinking: String,
    calls: HashMap<(StepId, String), bool>,
}

#[derive(Default)]
struct History {
    text: String,
    thinking: String,
    /// Calls of the last message that have no result yet.
    open: Vec<(StepId, String)>,
    answered: Vec<(StepId, String)>,
    errors: u32,
    prompted: bool,
}

impl Audience {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            prompted: false,
            done: None,
            sealed: false,
            errors: 0,
            shown: Shown::default(),
            older: Shown::default(),
            content: false,
            retries: 0,
            waited_ms: 0,
            retrying: false,
            waiting: false,
            again: false,
            history: History::default(),
            rewinds: 0,
        }
    }

    pub(crate) fn see(&mut self, fact: &Fact) {
        match fact {
            Fact::Told(event) => self.hear(event),
            Fact::Kept(role, chunk) => self.history.keep(*role, chunk),
            Fact::Called(_) => self.asked(),
            Fact::Saved
            | Fact::Unsaved
            | Fact::Slept(_)
            | Fact::Ran { .. }
            | Fact::Stopped
            | Fact::Heard(_) => {}
        }
    }

    pub(crate) fn see_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Tell(event) => self.hear(&event),
            Effect::Keep(role, chunk) => self.history.keep(role, &chunk),
        }
    }

    /// A provider is sent the history as it is now.
    pub(crate) fn asked(&self) {
        assert!(!self.sealed, "a provider is asked after the seal");
        assert!(self.history.open.is_empty(), "a request with unanswered calls: {:?}", self.history.open);
    }

    /// The turn is over.
    pub(crate) fn leave(&self) {
        assert!(self.sealed, "not sealed");
        assert!(!self.retrying, "a series of retries was never told to be over");
        assert!(self.history.open.is_empty(), "sealed with unanswered calls: {:?}", self.history.open);
        let waiting: Vec<_> = self.shown.calls.iter().filter(|(_, answered)| !**answered).collect();
        assert!(waiting.is_empty(), "calls were shown that never got a result: {waiting:?}");
        assert_eq!(self.shown.text, self.history.text, "the text shown is not the text kept");
        assert_eq!(self.shown.thinking, self.history.thinking, "the thinking shown is not the one kept");
        assert_eq!(self.errors, self.history.errors, "an error event without its chunk, or the reverse");
        assert_eq!(self.errors, u32::from(self.done == Some(DoneReason::Error)), "errors told");
    }

    fn hear(&mut self, event: &EventBody) {
        assert!(!self.sealed, "told after the seal: {}", shown(event));
        let last = matches!(event, EventBody::TurnSealed);
        assert!(self.done.is_none() || last, "told after done: {}", shown(event));
        let first = matches!(event, EventBody::UserMessage { .. });
        assert_eq!(first, !self.prompted, "the prompt comes first, once: {}", shown(event));
        match event {
            EventBody::UserMessage { .. } => self.prompted = true,
            EventBody::TextDelta { delta } => {
                assert!(!delta.is_empty(), "an empty delta");
                self.content();
                self.shown.text.push_str(delta);
            }
            EventBody::ReasoningDelta { delta } => {
                assert!(!delta.is_empty(), "an empty delta");
                self.content();
                self.shown.thinking.push_str(delta);
            }
            EventBody::ToolCall { step_id, tool_call_id, .. } => {
                self.content();
                let twice = self.shown.calls.insert((step_id.clone(), tool_call_id.clone()), false);
                assert_eq!(twice, None, "a call is shown twice: {tool_call_id}");
            }
            EventBody::ToolOutput { tool_call_id, .. } => {
                let open = self.shown.calls.iter().any(|((_, id), answered)| id == tool_call_id && !answered);
                assert!(open, "output of a call that does not run: {tool_call_id}");
            }
            EventBody::ToolResult { step_id, tool_call_id, .. } => {
                let call = (step_id.clone(), tool_call_id.clone());
                self.older.calls.entry(call.clone()).and_modify(|answered| *answered = true);
                let answered = self.shown.calls.insert(call, true);
                assert_eq!(answered, Some(false), "not the one result of a call: {tool_call_id}");
            }
            EventBody::StepComplete { .. } => self.new_step(),
            EventBody::StepRewound { .. } => self.rewind(),
            EventBody::ProviderRetry { attempt, delay_ms, next_at, .. } => {
                self.retry(*attempt, *delay_ms, next_at.expect("a retry says when"));
            }
            EventBody::Status { retry, .. } => {
                let retry = retry.as_deref().expect("a turn tells its status only for its retries");
                assert_eq!((retry.phase, retry.next_at), (RetryPhase::Asking, None));
                assert!(self.waiting, "the end of a wait that had not begun");
                assert_eq!(
                    retry.attempt + 1,
                    self.retries,
                    "the retry that is made is the last one scheduled"
                );
                self.waiting = false;
            }
            EventBody::RetryEnded { attempts, outcome, .. } => {
                let is_first = *outcome == RetryOutcome::TooLong && self.retries == 0;
                assert!(self.retrying || self.again || is_first, "retries ended that had not begun");
                assert_eq!(*attempts, self.retries - u32::from(self.waiting), "retries made");
                (self.retrying, self.waiting, self.again) = (false, false, false);
            }
            EventBody::Error { .. } => self.errors += 1,
            EventBody::Done { reason, .. } => self.done = Some(reason.clone()),
            EventBody::TurnSealed => {
                assert!(self.done.is_some(), "sealed before done");
                self.sealed = true;
            }
            _ => {}
        }
    }

    fn content(&mut self) {
        assert!(!self.retrying && !self.waiting, "content before the end of the retries was told");
        assert_eq!(self.errors, 0, "content after the error");
        self.content = true;
    }

    fn new_step(&mut self) {
        self.older = self.shown.clone();
        (self.content, self.again, self.waiting, self.retries, self.waited_ms) = (false, false, false, 0, 0);
    }

    /// What was shown of this step is dropped.
    fn rewind(&mut self) {
        self.shown = self.older.clone();
        self.again = self.retries > 0;
        self.content = false;
        self.rewinds += 1;
    }

    fn retry(&mut self, attempt: u32, delay_ms: u64, next_at: u64) {
        assert!(!self.content, "a retry after content");
        assert_eq!(self.errors, 0, "a retry after the error");
        assert_eq!(attempt, self.retries, "attempts are consecutive, from 0 in each step");
        self.retries += 1;
        assert!(!self.waiting, "a retry while one waits");
        (self.retrying, self.waiting) = (true, true);
        self.waited_ms += delay_ms;
        let budget = &self.settings.budget;
        assert!(budget.max_wait_ms.is_none_or(|most| self.waited_ms <= most), "the waits exceed the budget");
        assert!(budget.deadline.is_none_or(|at| delay_ms == 0 || next_at <= at.0), "the wait ends too late");
    }
}

impl History {
    fn keep(&mut self, role: Role, chunk: &Chunk) {
        match chunk {
            Chunk::ToolCall { tool_call_id, step_id, .. } => {
                assert_eq!(role, Role::Assistant);
                let call = (step_id.clone().expect("a call names its step"), tool_call_id.clone());
                let known = self.open.contains(&call) || self.answered.contains(&call);
                assert!(!known, "a call is kept twice: {call:?}");
                self.open.push(call);
            }
            Chunk::ToolResult { tool_call_id, step_id, .. } => {
                assert_eq!(role, Role::Tool);
                let call = (step_id.clone().expect("a result names its step"), tool_call_id.clone());
                let at = self.open.iter().position(|open| *open == call);
                let at = at.unwrap_or_else(|| panic!("a result without its call: {call:?}"));
                self.open.swap_remove(at);
                self.answered.push(call);
            }
            _ => self.keep_plain(role, chunk),
        }
    }

    fn keep_plain(&mut self, role: Role, chunk: &Chunk) {
        assert!(self.open.is_empty(), "a call without its result before {chunk:?}");
        match (role, chunk) {
            (Role::Assistant, Chunk::Text { text }) => {
                assert!(!text.is_empty(), "an empty text is kept");
                self.text.push_str(text);
            }
            (Role::Assistant, Chunk::Thinking { text, echo }) => {
                assert!(!text.is_empty() || echo.is_some(), "an empty thought is kept");
                self.thinking.push_str(text);
            }
            (Role::User, Chunk::Text { text }) => {
                assert!(!text.is_empty(), "an empty message is kept");
                self.prompted = true;
            }
            (Role::User, Chunk::Image { .. }) => self.prompted = true,
            (Role::Assistant, Chunk::Error { .. }) => self.errors += 1,
            other => panic!("not expected in history: {other:?}"),
        }
        assert!(self.prompted, "something is kept before the prompt");
    }
}

fn shown(event: &EventBody) -> String {
    line(&Fact::Told(event.clone())).unwrap_or_default()
}
