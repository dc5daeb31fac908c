//! What must happen before tool calls run.

use std::time::Duration;

use everturn_orchestrator::Policy;

use super::file::{PolicyName, ToolTable};

/// What must happen before tool calls run.
#[derive(Debug, PartialEq)]
pub(crate) struct Permissions {
    /// Names of tools, or patterns of names, with what holds for them.
    pub(crate) policies: Vec<(String, Policy)>,
    /// How long a person has to answer; none: without limit.
    pub(crate) approval_timeout: Option<Duration>,
}

impl Permissions {
    pub(super) fn resolve(table: &ToolTable) -> Self {
        let policies = table.policy.iter().map(|(pattern, policy)| (pattern.clone(), of_name(*policy)));
        // As elsewhere, 0 is no limit.
        let timeout = table.approval_timeout_ms.filter(|ms| *ms > 0);
        Self { policies: policies.collect(), approval_timeout: timeout.map(Duration::from_millis) }
    }
}

fn of_name(name: PolicyName) -> Policy {
    match name {
        PolicyName::Allow => Policy::Allow,
        PolicyName::Ask => Policy::Ask,
        PolicyName::Review => Policy::Review,
        PolicyName::Deny => Policy::Deny,
    }
}
