//! What must happen before tool calls run.

use std::time::Duration;

use anyhow::{Result, bail};
use everturn_orchestrator::Policy;

use super::file::{PolicyName, ToolTable, Undecided};

/// What must happen before tool calls run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Permissions {
    /// Names of tools, or patterns of names, with what holds for them.
    pub(crate) policies: Vec<(String, Policy)>,
    /// How long a person has to answer; none: without limit.
    pub(crate) approval_timeout: Option<Duration>,
    /// Who reviews calls; none: nobody.
    pub(crate) review: Option<Review>,
}

/// How calls are reviewed.
#[derive(Debug, PartialEq)]
pub(crate) struct Review {
    /// A model or route, as clients name it.
    pub(crate) model: String,
    /// How long a review may take with all its attempts; none: as long as usual.
    pub(crate) within: Option<Duration>,
    /// A call whose review comes to no decision is denied; else a person is asked.
    pub(crate) denies_undecided: bool,
}

impl Permissions {
    pub(super) fn resolve(table: &ToolTable, demo: bool) -> Result<Self> {
        let policies = table.policy.iter().map(|(pattern, policy)| (pattern.clone(), of_name(*policy)));
        // As elsewhere, 0 is no limit.
        let timeout = table.approval_timeout_ms.filter(|ms| *ms > 0);
        let policies: Vec<_> = policies.collect();
        let review = table.review.model.clone().map(|model| Review {
            model,
            within: table.review.timeout_ms.filter(|ms| *ms > 0).map(Duration::from_millis),
            denies_undecided: table.review.without_decision == Undecided::Deny,
        });
        let reviewed = policies.iter().find(|(_, policy)| *policy == Policy::Review);
        if let (Some((pattern, _)), None) = (reviewed, &review) {
            bail!(
                "{pattern:?} is to be reviewed, and nobody reviews: name a model in [tools.review] as `model`"
            );
        }
        if review.is_some() && demo {
            bail!("[tools.review] needs a provider: the built-in demo reviews nothing");
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
