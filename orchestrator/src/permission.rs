//! Permissions: what must happen before a tool call runs.

mod grants;
mod rules;
mod schema;

use std::time::Duration;

use everturn_kernel::{Approval, Arguments, Check, Checked, ToolCall, ToolSpec};
use everturn_wire::{ApprovalMode, Decider, Decision, Verdict};

use crate::{
    panic::guarded,
    tool::{Policy, Tool, ToolSet},
};

pub(crate) use grants::{GrantStore, Grants};
pub(crate) use rules::{Rules, matches};
pub(crate) use schema::Schemas;

/// Default time limit of a review.
const REVIEW: Duration = Duration::from_secs(90);

/// What must happen before tool calls run. Shared by all turns.
#[derive(Default)]
pub(crate) struct Permissions {
    pub(crate) rules: Rules,
    pub(crate) schemas: Schemas,
    /// How long a person has to answer; `None` = no limit.
    pub(crate) approval_timeout: Option<Duration>,
    pub(crate) review: ReviewSettings,
    pub(crate) grants: GrantStore,
}

/// How calls are reviewed.
pub(crate) struct ReviewSettings {
    /// Time limit of a review, including all attempts.
    pub(crate) within: Duration,
    /// Whether a person is asked if a review makes no decision; otherwise the call is denied.
    pub(crate) falls_back_to_person: bool,
}

impl Default for ReviewSettings {
    fn default() -> Self {
        Self { within: REVIEW, falls_back_to_person: true }
    }
}

impl Permissions {
    /// Whether a call of one of these tools may need approval.
    pub(crate) fn may_ask(&self, tools: &ToolSet) -> bool {
        tools.entries().any(|(name, tool)| self.policy(name, tool) != Policy::Allow)
    }

    /// The policy for a tool's calls: that of a matching rule, else the tool's own; if that panics, a person decides.
    pub(crate) fn policy(&self, name: &str, tool: &dyn Tool) -> Policy {
        let own = || guarded("a tool's policy", || tool.policy()).unwrap_or(Policy::Ask);
        self.rules.policy(name).unwrap_or_else(own)
    }

    /// What must happen before this call runs, and what is already decided. For arguments that do not fit the tool's
    /// schema, nobody is asked.
    pub(crate) fn check(
        &self,
        call: &ToolCall,
        tool: &dyn Tool,
        spec: &ToolSpec,
        mode: ApprovalMode,
        granted: &Grants,
    ) -> Checked {
        let policy = self.policy(&call.name, tool);
        if policy == Policy::Deny {
            return by_rule(denied(&call.name));
        }
        let Arguments::Parsed(input) = &call.arguments else { return Checked::default() };
        if let Err(why) = self.schemas.validate(spec, input) {
            let text =
                format!("(tool failed: the arguments do not fit the schema of {:?}: {why})", call.name);
            return Check::Refused(text).into();
        }
        if policy == Policy::Allow {
            return Checked::default();
        }
        if granted.allows(&call.name) {
            let decision = Decision::new(Decider::Grant, Verdict::Allowed);
            return Checked { check: None, decision: Some(decision) };
        }
        let approval = Approval {
            reason: None,
            within_ms: self.approval_timeout.and_then(|wait| u64::try_from(wait.as_millis()).ok()),
        };
        let is_answered = mode == ApprovalMode::Ask;
        match policy {
            Policy::Review => {
                let asks = is_answered && self.review.falls_back_to_person;
                let within_ms = u64::try_from(self.review.within.as_millis()).unwrap_or(u64::MAX);
                Check::Review { within_ms, otherwise: asks.then_some(approval) }.into()
            }
            _ if is_answered => Check::Person(approval).into(),
            _ => by_rule(format!(
                "(tool failed: the tool {:?} needs approval, and nobody is there to give it)",
                call.name
            )),
        }
    }
}

/// The result for a call of a tool that may not be used.
pub(crate) fn denied(name: &str) -> String {
    format!("(tool failed: the tool {name:?} may not be used here)")
}

/// The result for a call that a rule denies.
fn by_rule(text: String) -> Checked {
    let decision = Decision::new(Decider::Rule, Verdict::Denied);
    Checked { check: Some(Check::Refused(text)), decision: Some(decision) }
}
