//! What is decided about a turn when it begins. Saved with it, so that a restart changes nothing.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::Millis;

/// What is decided about a turn when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The most model round trips; `None` = as many as the model wants. 0 counts as 1.
    pub max_steps: Option<u32>,
    /// The most tools that run at once. 0 counts as 1.
    pub max_parallel_tools: u32,
    /// Start a tool as soon as its call is complete, while the model still speaks. Otherwise a tool runs only after the
    /// stream's terminal event.
    pub eager_tools: bool,
    /// Names of tools that may run again when a crash left their call without a result.
    pub idempotent_tools: Vec<String>,
    /// How often one step may be taken up again after a crash; one more seals the turn.
    pub max_recoveries: u32,
    /// What bounds all waiting of a step beside its schedule.
    pub budget: Budget,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_steps: None,
            max_parallel_tools: 8,
            eager_tools: false,
            idempotent_tools: Vec::new(),
            max_recoveries: 5,
            budget: Budget::default(),
        }
    }
}

/// What bounds all waiting of a step beside its schedule. A wait that does not fit is not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// The most milliseconds that the waits of one step add up to.
    pub max_wait_ms: Option<u64>,
    /// No wait ends after this.
    pub deadline: Option<Millis>,
}

impl Budget {
    /// How long the next wait may be, in milliseconds; `None` = as long as one likes.
    pub(crate) fn left(&self, now: Millis, waited_ms: u64) -> Option<u64> {
        let by_wait = self.max_wait_ms.map(|max| max.saturating_sub(waited_ms));
        let by_deadline = self.deadline.map(|deadline| deadline.since(now));
        by_wait.into_iter().chain(by_deadline).min()
    }
}
