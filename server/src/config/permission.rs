//! Tool policies, approvals and reviews.

use std::time::Duration;

use anyhow::{Result, bail};
use everturn_orchestrator::Policy;

use super::file::{PolicyName, ToolTable, Undecided};

/// What must happen before tool calls run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Permissions {
    /// Tool names or patterns, with their policies.
    pub(crate) policies: Vec<(String, Policy)>,
    /// How long a person has to answer; `None` = no limit.
    pub(crate) approval_timeout: Option<Duration>,
    /// How calls are reviewed; `None` = not at all.
    pub(crate) review: Option<Review>,
}

/// Settings of reviews.
#[derive(Debug, PartialEq)]
pub(crate) struct Review {
    /// A model or route, by the clients' name for it.
    pub(crate) model: String,
    /// Maximum duration of a review with all its attempts; `None` = the default.
    pub(crate) within: Option<Duration>,
    /// Whether a call whose review reaches no decision is denied. Otherwise, a person is asked.
    pub(crate) denies_undecided: bool,
}

impl Permissions {
    pub(super) fn resolve(table: &ToolTable, demo: bool) -> Result<Self> {
        let policies = table.policy.iter().map(|(pattern, policy)| (pattern.clone(), of_name(*policy)));
        // 0 means no limit, as elsewhere.
        let timeout = table.approval_timeout_ms.filter(|ms| *ms > 0);
        let policies: Vec<_> = policies.collect();
        let review = table.review.model.clone().map(|model| Review {
            model,
            within: table.review.timeout_ms.filter(|ms| *ms > 0).map(Duration::from_millis),
            denies_undecided: table.review.without_decision == Undecided::Deny,
        });
        let reviewed = policies.iter().find(|(_, policy)| *policy == Policy::Review);
        if let (Some((pattern, _)), None) = (reviewed, &review) {
            bail!("{pattern:?} needs reviews, but no reviewer is configured: set `model` in [tools.review]");
        }
        if review.is_some() && demo {
            bail!("[tools.review] needs a provider: the built-in demo cannot review");
        }
        Ok(Self { policies, approval_timeout: timeout.map(Duration::from_millis), review })
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
