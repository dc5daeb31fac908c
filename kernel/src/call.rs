//! One tool call, from its arrival to its result.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    vec::Vec,
};

use everturn_wire::{
    CallerCall, Chunk, Decider, Decision, EventBody, SettledQuestion, StepId, Value, Verdict,
};

use crate::{Arguments, Assessment, Check, Millis, ToolAnswer, ToolCall, check::Asking, review::Review};

/// Result for the model when a crash interrupted a call, which may or may not have had its effect.
const INTERRUPTED_BY_CRASH: &str = "(tool failed: interrupted by a restart; it is not known whether it took effect, so it was not run again)";
/// Result for the model when a stop or a failure ended the turn before the call completed.
pub(crate) const INTERRUPTED: &str = "(tool failed: interrupted, the turn ended before it was done)";

/// Result for people when the answer that contains the call is withdrawn.
pub(crate) const WITHDRAWN: &str = "(tool failed: not run, the answer broke off and starts again)";

/// Result for the model when its report fits the schema.
const REPORTED: &str = "The report was accepted.";

/// Maximum number of settled questions kept of a call: the latest.
const MOST_QUESTIONS: usize = 20;

/// A call of the current step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// What must happen before the call runs; `None` if nothing must, or if it already has.
    pub(crate) check: Option<Box<Check>>,
    /// Decisions on whether the call may run, in order.
    pub(crate) decisions: Vec<Decision>,
    /// The questions that it asked people, in order.
    pub(crate) questions: Vec<SettledQuestion>,
    /// Number of pieces of the answer before the call; `None` = all.
    pub(crate) place: Option<usize>,
    pub(crate) state: CallState,
}

/// Progress of a call: pending, running, done. A call that must be checked becomes pending again once it is allowed;
/// otherwise a call never goes back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    /// Waiting for a free slot.
    Pending,
    /// A person is asked.
    Asking(Asking),
    /// A model reviews it.
    Reviewing(Review),
    /// Possibly started, at this time.
    Running { since: Millis },
    /// Finished, with the result that was published.
    Done(ToolAnswer),
}

impl OpenCall {
    pub(crate) fn new(call: ToolCall) -> Self {
        Self {
            call,
            check: None,
            decisions: Vec::new(),
            questions: Vec::new(),
            place: None,
            state: CallState::Pending,
        }
    }

    /// Keeps how a question of the call ended.
    pub(crate) fn settle(&mut self, question: SettledQuestion) {
        self.questions.push(question);
        if self.questions.len() > MOST_QUESTIONS {
            self.questions.remove(0);
        }
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
            again: None,
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
            questions: self.questions.clone(),
            again: None,
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
            questions: self.questions.clone(),
        }
    }

    /// Returns the request for approval if the call waits for one.
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
        now: Millis,
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
            duration_ms: Some(now.since(review.since)),
            risk_level,
            user_authorization,
            rationale,
        }
    }

    /// Returns the event that ends the call's check when its turn ends.
    pub(crate) fn check_cancelled(&self, step_id: &StepId, now: Millis) -> Option<EventBody> {
        match self.state {
            CallState::Asking(_) => {
                let cancelled = Decision::new(Decider::Person, Verdict::Cancelled);
                Some(self.resolved_event(step_id, cancelled))
            }
            CallState::Reviewing(review) => {
                let none = Assessment::default();
                Some(self.review_completed_event(step_id, now, Verdict::Cancelled, review, &none))
            }
            CallState::Pending | CallState::Running { .. } | CallState::Done(_) => None,
        }
    }

    /// Returns the result of a call that does not run: its arguments are not JSON, its check refused it, or it is a
    /// report.
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

    /// Whether the caller runs this call.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.check.as_deref() == Some(&Check::Caller)
    }

    /// Returns the call in the form sent to the caller.
    pub(crate) fn caller_call(&self) -> CallerCall {
        let (tool_call_id, tool_name) = (self.call.id.clone(), self.call.name.clone());
        CallerCall { tool_call_id, tool_name, input: self.input() }
    }

    /// Whether the call may run as soon as a slot is free.
    fn is_ready(&self) -> bool {
        self.state == CallState::Pending && self.check.is_none() && self.prompt_answer().is_none()
    }

    /// Returns the result of a call that a crash interrupted; `None` if the call may run again.
    pub(crate) fn after_crash(&self, idempotent: &[String]) -> Option<ToolAnswer> {
        let again = idempotent.contains(&self.call.name);
        (self.is_running() && !again).then(|| ToolAnswer::error(INTERRUPTED_BY_CRASH))
    }

    /// Whether anything has happened since the call arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.state != CallState::Pending
    }

    /// Whether a host may still have to run the call after a recovery.
    pub(crate) fn is_to_run(&self, idempotent: &[String]) -> bool {
        let is_over = self.answer().is_some() || self.after_crash(idempotent).is_some();
        !is_over && !self.is_of_caller() && self.prompt_answer().is_none()
    }

    fn input(&self) -> Value {
        match &self.call.arguments {
            Arguments::Parsed(value) => value.clone(),
            Arguments::Malformed { raw, .. } => Value::String(raw.clone()),
        }
    }
}

/// Maximum length of a tool name, in bytes. No API accepts longer names, so the model invented a longer one.
const MAX_NAME: usize = 256;

/// Makes the call's id unique within its step, so that exactly one result belongs to it. Truncates an overlong name,
/// which no tool has and which would only fill the history.
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
        // Start with a number that is probably free, so that a model that repeats one id does not cause a long search.
        let free = (others.len() + 1..).map(|n| format!("{}-{n}", call.id)).find(|id| !taken(id));
        call.id = free.unwrap_or(call.id);
    }
    call
}

/// Starts pending calls while slots are free.
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
