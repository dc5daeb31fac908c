//! Open requests for approval.

use std::collections::BTreeSet;

use everturn_wire::{ApprovalRequest, EventBody, StepId};

/// The unanswered requests for approval of a turn, according to its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked(BTreeSet<String>);

impl Asked {
    /// Starts with these requests.
    pub fn of(pending: &[ApprovalRequest]) -> Self {
        Self(pending.iter().map(|asked| call_key(&asked.step_id, &asked.tool_call_id)).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the call with this key is among them.
    pub(crate) fn has(&self, call: &str) -> bool {
        self.0.contains(call)
    }

    /// Updates the requests according to an event.
    pub(crate) fn take(&mut self, event: &EventBody) {
        match event {
            EventBody::ApprovalRequested { step_id, tool_call_id, .. } => {
                self.0.insert(call_key(step_id, tool_call_id));
            }
            EventBody::ApprovalResolved { step_id, tool_call_id, .. }
            | EventBody::ToolResult { step_id, tool_call_id, .. } => {
                self.0.remove(&call_key(step_id, tool_call_id));
            }
            _ => {}
        }
    }
}

/// Returns the id of a call, unique in its conversation. The provider's id is unique only in its step.
pub fn call_key(step_id: &StepId, tool_call_id: &str) -> String {
    format!("{step_id}:{tool_call_id}")
}
