//! Open requests for approval.

use std::collections::BTreeSet;

use everturn_wire::{ApprovalRequest, EventBody, StepId};

/// The requests for approval of a turn that nobody has answered, as far as its events tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked(BTreeSet<String>);

impl Asked {
    /// These requests.
    pub fn of(pending: &[ApprovalRequest]) -> Self {
        Self(pending.iter().map(|asked| call_key(&asked.step_id, &asked.tool_call_id)).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a call is among them, by its key.
    pub(crate) fn has(&self, call: &str) -> bool {
        self.0.contains(call)
    }

    /// Takes in what an event says of them.
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

/// The id of a call, unique in its conversation: that of its provider is unique in its step only.
pub fn call_key(step_id: &StepId, tool_call_id: &str) -> String {
    format!("{step_id}:{tool_call_id}")
}
