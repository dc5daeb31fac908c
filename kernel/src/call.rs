//! A tool call on its way to its one result.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    vec::Vec,
};

use everturn_wire::{CallerCall, Chunk, Decider, Decision, EventBody, StepId, Value, Verdict};

use crate::{Arguments, Assessment, Check, Millis, ToolAnswer, ToolCall, check::Asking, review::Review};

/// Sent to the model when a crash interrupted a call, which may or may not have had its effect.
const INTERRUPTED_BY_CRASH: &str = "(tool failed: interrupted by a restart; it is not known whether it took effect, so it was not run again)";
/// Sent to the model when a stop or a failure ended the turn before the call's result.
pub(crate) const INTERRUPTED: &str = "(tool failed: interrupted, the turn ended before it was done)";

/// Sent to the model as the result of a report that fits its schema.
const REPORTED: &str = "The report was accepted.";

/// A call of the current step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// What must happen before it runs; `None` = nothing, or it happened.
    pub(crate) check: Option<Box<Check>>,
    /// What was decided about whether it may run, in order.
    pub(crate) decisions: Vec<Decision>,
    pub(crate) state: CallState,
}

/// The progress of a call: pending, then running, then done. A call that must be checked is pending again once it is
/// allowed; apart from that it never goes back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    /// Waiting for a free slot.
    Pending,
    /// A person is asked.
    Asking(Asking),
    /// A model reviews it.
    Reviewing(Review),
    /// May have been started, at this time.
    Running { since: Millis },
    /// Has its result, which has been published.
    Done(ToolAnswer),
}

impl OpenCall {
    pub(crate) fn new(call: ToolCall) -> Self {
        Self { call, check: None, decisions: Vec::new(), state: CallState::Pending }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running { .. })
    }

    pub(crate) fn answer(&self) -> Option<&ToolAnswer> {
        match &self.state {
            CallState::Done(answer) => Some(answer),
            CallState::Pending
            | CallState::Asking(_)
            | CallState::Reviewing(_)
            | CallState::Running { .. } => None,
        }
    }

    pub(crate) fn called_event(&self, step_id: &StepId) -> EventBody {
        EventBody::ToolCall {
            step_id: step_id.clone(),
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            input: self.input(),
        }
    }

    pub(crate) fn call_chunk(&self, step_id: &StepId) -> Chunk {
        Chunk::ToolCall {
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            input: self.input(),
            step_id: Some(step_id.clone()),
            echo: self.call.echo.clone(),
        }
    }

    pub(crate) fn result_event(
        &self,
        step_id: &StepId,
        answer: &ToolAnswer,
        ran_ms: Option<u64>,
    ) -> EventBody {
        EventBody::ToolResult {
            step_id: step_id.clone(),
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            content: answer.content.clone(),
            is_error: answer.is_error,
            duration_ms: ran_ms,
            decisions: self.decisions.clone(),
        }
    }

    pub(crate) fn result_chunk(&self, step_id: &StepId, answer: &ToolAnswer) -> Chunk {
        Chunk::ToolResult {
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            content: answer.content.clone(),
            is_error: answer.is_error,
            step_id: Some(step_id.clone()),
            images: answer.images.clone(),
            decisions: self.decisions.clone(),
        }
    }

    /// The request for approval of a call that waits for one.
    pub(crate) fn asked_event(&self, step_id: &StepId) -> Option<EventBody> {
        let CallState::Asking(asking) = self.state else { return None };
        let reason = match self.check.as_deref() {
            Some(Check::Person(approval)) => approval.reason.clone(),
            _ => None,
        };
        Some(EventBody::ApprovalRequested {
            step_id: step_id.clone(),
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            input: self.input(),
            reason,
            until: asking.until.map(|until| until.0),
        })
    }

    pub(crate) fn resolved_event(&self, step_id: &StepId, decision: Decision) -> EventBody {
        let (step_id, tool_call_id) = (step_id.clone(), self.call.id.clone());
        let Decision { verdict, reason, scope, name, via, .. } = decision;
        EventBody::ApprovalResolved { step_id, tool_call_id, verdict, reason, scope, name, via }
    }

    pub(crate) fn review_started_event(&self, step_id: &StepId) -> EventBody {
        let (tool_call_id, tool_name) = (self.call.id.clone(), self.call.name.clone());
        EventBody::ReviewStarted { step_id: step_id.clone(), tool_call_id, tool_name }
    }

    pub(crate) fn review_completed_event(
        &self,
        step_id: &StepId,
        verdict: Verdict,
        review: Review,
        assessment: &Assessment,
    ) -> EventBody {
        let Assessment { risk_level, user_authorization, rationale, .. } = assessment.clone();
        EventBody::ReviewCompleted {
            step_id: step_id.clone(),
            tool_call_id: self.call.id.clone(),
            verdict,
            attempt_count: review.attempts(),
            risk_level,
            user_authorization,
            rationale,
        }
    }

    /// What ends the check of a call whose turn ends.
    pub(crate) fn check_cancelled(&self, step_id: &StepId) -> Option<EventBody> {
        match self.state {
            CallState::Asking(_) => {
                let cancelled = Decision::new(Decider::Person, Verdict::Cancelled);
                Some(self.resolved_event(step_id, cancelled))
            }
            CallState::Reviewing(review) => {
                let none = Assessment::default();
                Some(self.review_completed_event(step_id, Verdict::Cancelled, review, &none))
            }
            CallState::Pending | CallState::Running { .. } | CallState::Done(_) => None,
        }
    }

    /// Returns the answer to a call that does not run: its arguments are not JSON, its check refused it, or it is a report.
    pub(crate) fn prompt_answer(&self) -> Option<ToolAnswer> {
        match (&self.call.arguments, self.check.as_deref()) {
            (Arguments::Malformed { reason, .. }, _) => {
                Some(ToolAnswer::error(format!("(tool failed: the arguments are not valid JSON: {reason})")))
            }
            (Arguments::Parsed(_), Some(Check::Refused(answer))) => Some(ToolAnswer::error(answer.clone())),
            (Arguments::Parsed(_), Some(Check::Report(None))) => Some(ToolAnswer::ok(REPORTED)),
            (Arguments::Parsed(_), Some(Check::Report(Some(why)))) => {
                Some(ToolAnswer::error(format!("(tool failed: the report was rejected: {why})")))
            }
            (Arguments::Parsed(_), _) => None,
        }
    }

    /// Whether it is for the caller to run.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.check.as_deref() == Some(&Check::Caller)
    }

    /// The call as its caller is told of it.
    pub(crate) fn caller_call(&self) -> CallerCall {
        let (tool_call_id, tool_name) = (self.call.id.clone(), self.call.name.clone());
        CallerCall { tool_call_id, tool_name, input: self.input() }
    }

    /// Whether it may run as soon as there is a free slot.
    fn is_ready(&self) -> bool {
        self.state == CallState::Pending && self.check.is_none() && self.prompt_answer().is_none()
    }

    /// Returns the answer to a call that a crash interrupted, unless it may run again.
    pub(crate) fn after_crash(&self, idempotent: &[String]) -> Option<ToolAnswer> {
        let again = idempotent.contains(&self.call.name);
        (self.is_running() && !again).then(|| ToolAnswer::error(INTERRUPTED_BY_CRASH))
    }

    fn input(&self) -> Value {
        match &self.call.arguments {
            Arguments::Parsed(value) => value.clone(),
            Arguments::Malformed { raw, .. } => Value::String(raw.clone()),
        }
    }
}

/// Maximum length of a tool name, in bytes. No API accepts longer ones, so a longer one was invented by the model.
const MAX_NAME: usize = 256;

/// Makes the call's id unique within its step, so that exactly one result belongs to it. Truncates a name that would
/// fill the history; no tool has such a name.
pub(crate) fn with_unique_id(mut call: ToolCall, others: &[OpenCall]) -> ToolCall {
    if call.name.len() > MAX_NAME {
        call.name.truncate(call.name.floor_char_boundary(MAX_NAME - '…'.len_utf8()));
        call.name.push('…');
    }
    let taken = |id: &str| others.iter().any(|other| other.call.id == id);
    if call.id.is_empty() {
        call.id = "call".to_string();
    }
    if taken(&call.id) {
        // Starts at a number that is probably free, so that a model that repeats one id causes no search.
        let free = (others.len() + 1..).map(|n| format!("{}-{n}", call.id)).find(|id| !taken(id));
        call.id = free.unwrap_or(call.id);
    }
    call
}

/// Lets pending calls run while there are free slots.
pub(crate) fn promote(calls: &mut [OpenCall], places: u32, now: Millis) {
    let running = calls.iter().filter(|call| call.is_running()).count();
    let free = (places.max(1) as usize).saturating_sub(running);
    for call in calls.iter_mut().filter(|call| call.is_ready()).take(free) {
        call.state = CallState::Running { since: now };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_model_made_up_cannot_fill_the_history() {
        let call = |name: String| {
            let arguments = Arguments::Parsed(Value::Null);
            with_unique_id(ToolCall { id: "a".to_string(), name, arguments, echo: None }, &[]).name
        };
        assert_eq!(call("x".repeat(MAX_NAME)), "x".repeat(MAX_NAME));
        let cut = call("é".repeat(1 << 19));
        assert!(cut.len() <= MAX_NAME && cut.ends_with("é…"), "{cut}");
    }
}
