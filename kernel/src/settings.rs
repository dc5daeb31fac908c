//! Settings of a turn.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Millis, ReportRule, Target};

/// Settings of a turn. Fixed when it begins and saved with it, so that a restart changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Maximum number of steps (model round trips). `None` = unlimited, or 10 if a report is required. 0 counts as 1.
    pub max_steps: Option<u32>,
    /// Maximum number of tools that run at once. 0 counts as 1.
    pub max_parallel_tools: u32,
    /// Whether a tool starts as soon as its call is complete, while the answer is still streaming. Otherwise it starts
    /// after the stream's terminal event.
    pub eager_tools: bool,
    /// Names of tools that may run again after a crash left their call without a result.
    pub idempotent_tools: Vec<String>,
    /// Maximum number of recoveries of one step after a crash. One more seals the turn.
    pub max_recoveries: u32,
    /// Bounds on all waiting of a step, in addition to its schedule.
    pub budget: Budget,
    /// What happens to a step that fails after part of its answer was shown.
    #[serde(skip_serializing_if = "AfterContent::is_keep")]
    pub after_content: AfterContent,
    /// The targets of attempts. The first is asked first, and schedules choose among them. Empty = a single target
    /// without a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// How a history that exceeds the model's context is compacted; `None` = not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// Requires the turn to end with a report by the model; `None` = it ends with its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_report: Option<ReportRule>,
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
            after_content: AfterContent::Keep,
            targets: Vec::new(),
            compaction: None,
            final_report: None,
        }
    }
}

/// How a history that exceeds the model's context is compacted: a separate call summarizes the older part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compaction {
    /// Targets that summarize, in order of preference. Empty = the targets of the turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
}

/// What happens to a step that fails after part of its answer was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AfterContent {
    /// The partial answer stays, and the turn ends with the failure.
    #[default]
    Keep,
    /// A failure that the schedule retries withdraws the partial answer with `step-rewound`, and the step is streamed
    /// again within the same budget. Does not apply once a tool of the step has started.
    Rewind,
}

impl AfterContent {
    fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}

/// Bounds on all waiting of a step, in addition to its schedule. A wait that does not fit is not started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Maximum sum of the waits of one step, in milliseconds.
    pub max_wait_ms: Option<u64>,
    /// The latest moment at which a wait may end.
    pub deadline: Option<Millis>,
}

impl Budget {
    /// Returns this budget, shortened so that no wait ends later than this after now.
    #[must_use]
    pub fn at_most(self, most: Duration, now: Millis) -> Self {
        let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        let deadline = now.plus(most_ms);
        Self {
            max_wait_ms: Some(self.max_wait_ms.map_or(most_ms, |max| max.min(most_ms))),
            deadline: Some(self.deadline.map_or(deadline, |latest| latest.min(deadline))),
        }
    }

    /// Returns the maximum length of the next wait, in milliseconds; `None` = unlimited.
    pub(crate) fn left(&self, now: Millis, waited_ms: u64) -> Option<u64> {
        let by_wait = self.max_wait_ms.map(|max| max.saturating_sub(waited_ms));
        let by_deadline = self.deadline.map(|deadline| deadline.since(now));
        by_wait.into_iter().chain(by_deadline).min()
    }

    /// Returns the budget with at least this many milliseconds left.
    pub(crate) fn with_left(self, now: Millis, waited_ms: u64, left_ms: u64) -> Self {
        Self {
            max_wait_ms: self.max_wait_ms.map(|max| max.max(waited_ms.saturating_add(left_ms))),
            deadline: self.deadline.map(|deadline| deadline.max(now.plus(left_ms))),
        }
    }
}
