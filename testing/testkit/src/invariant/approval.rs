//! A call that must be checked starts only if it was allowed.

use std::collections::{HashMap, HashSet};

use everturn_kernel::Check;
use everturn_wire::{EventBody, StepId, Verdict};

use super::Violation;
use crate::Fact;

type Call = (StepId, String);

#[derive(Clone, Debug, Default)]
pub(super) struct Approvals {
    /// The tools whose calls are checked.
    checked: HashSet<String>,
    /// Requests and reviews that have not ended.
    open: HashSet<Call>,
    /// The latest verdict on each call.
    verdicts: HashMap<Call, Verdict>,
}

impl Approvals {
    pub(super) fn new(checks: &[(String, Check)]) -> Self {
        Self { checked: checks.iter().map(|(name, _)| name.clone()).collect(), ..Self::default() }
    }

    pub(super) fn see(&mut self, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::Told(
                EventBody::ApprovalRequested { step_id, tool_call_id, .. }
                | EventBody::ReviewStarted { step_id, tool_call_id, .. },
            ) => {
                let is_new = self.open.insert((step_id.clone(), tool_call_id.clone()));
                ensure!(is_new, "{tool_call_id} is checked while it is being checked");
            }
            Fact::Told(
                EventBody::ApprovalResolved { step_id, tool_call_id, verdict, .. }
                | EventBody::ReviewCompleted { step_id, tool_call_id, verdict, .. },
            ) => {
                let call = (step_id.clone(), tool_call_id.clone());
                ensure!(self.open.remove(&call), "the check of {tool_call_id} ends without having begun");
                self.verdicts.insert(call, *verdict);
            }
            Fact::Told(EventBody::ToolResult { step_id, tool_call_id, .. }) => {
                let is_open = self.open.contains(&(step_id.clone(), tool_call_id.clone()));
                ensure!(!is_open, "{tool_call_id} has its result before its check has ended");
            }
            Fact::Ran { step, id, name } if self.checked.contains(name) => {
                let mut verdicts =
                    self.verdicts.iter().filter(|((of, call), _)| of.step() == Some(*step) && call == id);
                let is_allowed = verdicts.next().is_some_and(|(_, verdict)| *verdict == Verdict::Allowed);
                ensure!(is_allowed, "{name} {step}/{id} starts without being allowed");
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn end(&self) -> Result<(), Violation> {
        ensure!(self.open.is_empty(), "sealed with checks that have not ended: {:?}", self.open);
        Ok(())
    }
}
