//! Checks: what must happen before a tool call may run.

use alloc::{
    format,
    string::{String, ToString},
};

use everturn_wire::{ApprovalScope, Decider, Decision, Verdict};

use crate::{Millis, Moment, ToolCall};

/// A tool call with what its host says about it. Passed on by hosts, not by adapters.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedCall {
    /// The call.
    pub call: ToolCall,
    /// What the host says.
    pub checked: Checked,
}

/// What a host says about a tool call when it arrives. By default nothing: the call runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What must happen before the call runs; `None` = nothing.
    pub check: Option<Check>,
    /// What was decided already, to be kept with the call's result: by a rule, or because its tool was allowed before.
    pub decision: Option<Decision>,
}

impl From<Check> for Checked {
    fn from(check: Check) -> Self {
        Self { check: Some(check), decision: None }
    }
}

/// What must happen before a call runs. Decided by the host when the call arrives, and saved with it, so that a restart
/// under another configuration loosens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A person must allow it.
    Person(Approval),
    /// A model must allow it.
    Review {
        /// Maximum duration of the review with all its attempts, in milliseconds.
        within_ms: u64,
        /// Who is asked if the review fails or takes too long; `None` = the call is denied.
        otherwise: Option<Approval>,
    },
    /// It does not run. The model receives this text as the call's failed result.
    Refused(String),
    /// It is the turn's final report and does not run: `None` = it fits its schema; else why not, which the model receives.
    Report(Option<String>),
    /// Whoever began the turn runs it. It never runs here: once the other calls of the step have their results, the turn ends
    /// with [`DoneReason::ToolCalls`](everturn_wire::DoneReason::ToolCalls).
    Caller,
}

/// How a person is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approval {
    /// Why approval is needed, for display.
    pub reason: Option<String>,
    /// How long to wait for an answer before the call is denied, in milliseconds; `None` = without limit.
    pub within_ms: Option<u64>,
}

/// A person's answer to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The step that made the call.
    pub step: u32,
    /// The id of the call.
    pub call_id: String,
    /// Whether it may run.
    pub allows: bool,
    /// Whether the answer also holds for the other calls of this tool that wait for one. Ignored if the call is denied.
    pub whole_tool: bool,
    /// The person's reason. The model is told the reason of a denial.
    pub reason: Option<String>,
    /// The person's name, for those who read the conversation later.
    pub name: Option<String>,
    /// What the person answered with.
    pub via: Option<String>,
}

impl Answer {
    /// As it is kept with the call's result.
    pub(crate) fn decision(&self) -> Decision {
        let verdict = if self.allows { Verdict::Allowed } else { Verdict::Denied };
        Decision {
            scope: (self.allows && self.whole_tool).then_some(ApprovalScope::Conversation),
            reason: self.reason.clone(),
            name: self.name.clone(),
            via: self.via.clone(),
            ..Decision::new(Decider::Person, verdict)
        }
    }
}

/// The model reads it as the result of a call that a person did not allow.
pub(crate) fn denied_by_person(reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("(tool failed: the user denied this call: {reason})"),
        None => "(tool failed: the user denied this call)".to_string(),
    }
}

/// The model reads it as the result of a call for which nobody answered.
pub(crate) const NOT_ANSWERED: &str = "(tool failed: not approved in time, so it was not run)";

/// The model reads it as the result of a call that the reviewer denied.
pub(crate) fn denied_by_review(rationale: Option<&str>) -> String {
    match rationale.map(str::trim).filter(|rationale| !rationale.is_empty()) {
        Some(rationale) => format!("(tool failed: the automatic review denied this call: {rationale})"),
        None => "(tool failed: the automatic review denied this call)".to_string(),
    }
}

/// The model reads it as the result of a call whose review came to no decision.
pub(crate) fn not_reviewed(why: &str) -> String {
    format!("(tool failed: not run, because the automatic review came to no decision: {why})")
}

/// The model reads it as the result of a call that its caller runs, unless the real result has taken its place.
pub(crate) const HANDED_OVER: &str =
    "(not run here: handed to the caller, who runs it and sends the result with the next request)";

/// A person is asked about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    pub(crate) since: Millis,
    /// When the call is denied for want of an answer.
    pub(crate) until: Option<Millis>,
}

impl Asking {
    pub(crate) fn new(approval: &Approval, now: Millis) -> Self {
        Self { since: now, until: approval.within_ms.map(|within_ms| now.plus(within_ms)) }
    }

    /// After a restart: a clock that was set back cannot make it longer than decided.
    pub(crate) fn clamp(&mut self, now: Millis) {
        let latest = self.end().map(|Moment { decided_ms, .. }| now.plus(decided_ms));
        self.until = self.until.min(latest);
    }

    /// When it ends by itself, and how long it lasts then.
    pub(crate) fn end(self) -> Option<Moment> {
        self.until.map(|at| Moment { at, decided_ms: at.since(self.since) })
    }
}
