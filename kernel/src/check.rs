//! Checks: what must happen before a tool call may run.

use alloc::{
    format,
    string::{String, ToString},
};

use everturn_wire::{ApprovalScope, Decider, Decision, Verdict};

use crate::{Millis, Moment, ToolCall};

/// A tool call and the host's instructions for it. Produced by hosts, not by adapters.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedCall {
    /// The call.
    pub call: ToolCall,
    /// The host's instructions.
    pub checked: Checked,
}

/// A host's instructions for a tool call, given when the call arrives. Default: none, the call runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What must happen before the call runs; `None` if nothing.
    pub check: Option<Check>,
    /// A decision already made by a rule or an earlier grant, to be kept with the call's result.
    pub decision: Option<Decision>,
}

impl From<Check> for Checked {
    fn from(check: Check) -> Self {
        Self { check: Some(check), decision: None }
    }
}

/// What must happen before a call runs. The host decides when the call arrives. The check is saved with the call, so
/// that a restart with another configuration cannot loosen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A person must allow it.
    Person(Approval),
    /// A model must allow it.
    Review {
        /// Maximum duration of the review with all its attempts, in milliseconds.
        within_ms: u64,
        /// Asks a person if the review fails or times out; `None` denies the call.
        otherwise: Option<Approval>,
    },
    /// The call does not run. The model receives this text as the failed result.
    Refused(String),
    /// The call is the turn's final report and does not run. `None` if the report fits its schema; otherwise the
    /// reason, which the model receives.
    Report(Option<String>),
    /// The caller runs the call. It never runs here: once the other calls of the step have results, the turn ends with
    /// [`DoneReason::ToolCalls`](everturn_wire::DoneReason::ToolCalls).
    Caller,
}

/// A request for a person's approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approval {
    /// Why approval is needed, for display.
    pub reason: Option<String>,
    /// Milliseconds to wait for an answer before the call is denied; `None` = no limit.
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
    /// Whether the answer also applies to the other pending calls of this tool. Ignored for a denial.
    pub whole_tool: bool,
    /// The person's reason. The model receives the reason for a denial.
    pub reason: Option<String>,
    /// The person's name, shown to later readers of the conversation.
    pub name: Option<String>,
    /// The client that the person answered with.
    pub via: Option<String>,
}

impl Answer {
    /// Returns the decision to keep with the call's result.
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

/// Returns the result that the model receives for a call denied by a person.
pub(crate) fn denied_by_person(reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("(tool failed: the user denied this call: {reason})"),
        None => "(tool failed: the user denied this call)".to_string(),
    }
}

/// Result for the model when nobody answered in time.
pub(crate) const NOT_ANSWERED: &str = "(tool failed: not approved in time, so it was not run)";

/// Returns the result that the model receives for a call denied by the reviewer.
pub(crate) fn denied_by_review(rationale: Option<&str>) -> String {
    match rationale.map(str::trim).filter(|rationale| !rationale.is_empty()) {
        Some(rationale) => format!("(tool failed: the automatic review denied this call: {rationale})"),
        None => "(tool failed: the automatic review denied this call)".to_string(),
    }
}

/// Returns the result that the model receives for a call whose review reached no decision.
pub(crate) fn not_reviewed(why: &str) -> String {
    format!("(tool failed: not run, because the automatic review came to no decision: {why})")
}

/// Placeholder result for a call that the caller runs, until the real result replaces it.
pub(crate) const HANDED_OVER: &str =
    "(not run here: handed to the caller, who runs it and sends the result with the next request)";

/// A pending request for a person's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    pub(crate) since: Millis,
    /// When the call is denied if nobody answers.
    pub(crate) until: Option<Millis>,
}

impl Asking {
    pub(crate) fn new(approval: &Approval, now: Millis) -> Self {
        Self { since: now, until: approval.within_ms.map(|within_ms| now.plus(within_ms)) }
    }

    /// Shortens the wait after a restart if the clock was set back, so that it is no longer than decided.
    pub(crate) fn clamp(&mut self, now: Millis) {
        let latest = self.end().map(|Moment { decided_ms, .. }| now.plus(decided_ms));
        self.until = self.until.min(latest);
    }

    /// Returns when the wait ends by itself, and its decided length.
    pub(crate) fn end(self) -> Option<Moment> {
        self.until.map(|at| Moment { at, decided_ms: at.since(self.since) })
    }
}
