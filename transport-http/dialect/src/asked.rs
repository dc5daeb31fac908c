//! Open requests for approval.

use std::collections::BTreeSet;

use everturn_wire::{ApprovalRequest, EventBody, StepId};

/// The unanswered requests for approval of a turn, according to its events.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    requested: BTreeSet<String>,
    /// Calls without a result.
    open: BTreeSet<String>,
}

impl Asked {
    /// Starts with these requests.
    pub fn of(pending: &[ApprovalRequest]) -> Self {
        let requested = keys(pending);
        Self { open: requested.clone(), requested }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requested.is_empty()
    }

    /// Whether the turn waits only for these. Otherwise, more events will follow.
    pub fn is_all_of(&self, pending: &[ApprovalRequest]) -> bool {
        self.requested == keys(pending) && self.open.is_subset(&self.requested)
    }

    /// Whether the call with this key is among them.
    pub(crate) fn has(&self, call: &str) -> bool {
        self.requested.contains(call)
    }

    /// Updates the requests according to an event.
    pub(crate) fn take(&mut self, event: &EventBody) {
        match event {
            EventBody::ToolCall { step_id, tool_call_id, .. } => {
                self.open.insert(call_key(step_id, tool_call_id));
            }
            EventBody::ApprovalRequested { step_id, tool_call_id, .. } => {
                self.requested.insert(call_key(step_id, tool_call_id));
            }
            EventBody::ApprovalResolved { step_id, tool_call_id, .. } => {
                self.requested.remove(&call_key(step_id, tool_call_id));
            }
            EventBody::ToolResult { step_id, tool_call_id, .. } => {
                let call = call_key(step_id, tool_call_id);
                self.requested.remove(&call);
                self.open.remove(&call);
            }
            // Only one step at a time makes calls, and this one will repeat them.
            EventBody::StepRewound { .. } => {
                let requested = &self.requested;
                self.open.retain(|call| requested.contains(call));
            }
            _ => {}
        }
    }
}

fn keys(pending: &[ApprovalRequest]) -> BTreeSet<String> {
    pending.iter().map(|asked| call_key(&asked.step_id, &asked.tool_call_id)).collect()
}

/// Returns the id of a call, unique in its conversation. The provider's id is unique only in its step.
pub fn call_key(step_id: &StepId, tool_call_id: &str) -> String {
    format!("{step_id}:{tool_call_id}")
}

#[cfg(test)]
mod tests {
    use everturn_wire::Value;
    use serde_json::json;

    use super::*;

    fn event(kind: &str, call: &str) -> EventBody {
        let fields: Value = json!({
            "type": kind, "stepId": "t#0", "toolCallId": call, "toolName": "n", "input": {}, "content": "",
            "isError": false, "verdict": "allowed", "reason": "",
        });
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_turn_waits_for_people_alone_once_all_other_calls_have_results() {
        let pending: ApprovalRequest = serde_json::from_value(
            json!({ "turnId": "t", "stepId": "t#0", "toolCallId": "a", "toolName": "n", "input": {} }),
        )
        .unwrap();
        let pending = [pending];
        let mut asked = Asked::default();
        let mut waits = |kind, call| {
            asked.take(&event(kind, call));
            asked.is_all_of(&pending)
        };
        assert!(!waits("tool-call", "a"));
        assert!(!waits("tool-call", "b"));
        assert!(!waits("approval-requested", "a"), "b has yet to run");
        assert!(waits("tool-result", "b"));
        assert!(!waits("tool-call", "gone"));
        assert!(waits("step-rewound", ""), "what is made again is not waited for");
        assert!(!waits("approval-resolved", "a"));
        assert!(!waits("tool-result", "a"));
        assert!(Asked::of(&pending).is_all_of(&pending));
    }
}
