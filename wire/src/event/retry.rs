//! The retries of a step that are under way.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::Category;

/// The chain of retries that a step is in: from its first failure until something of an answer is shown, or it is given
/// up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryState {
    /// Whether the retry is still to come or the provider is being asked.
    pub phase: RetryPhase,
    /// 0-based number of the retry in its step.
    pub attempt: u32,
    /// How long the wait before it was decided to be, in milliseconds.
    pub delay_ms: u64,
    /// When a waiting retry comes, in epoch milliseconds; absent once the provider is being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<u64>,
    /// How many retries the schedule has in all, when it is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// What kind of failure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The provider's error, verbatim; absent where a turn was saved by a version that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The HTTP code as text, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Where in a chain of retries a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RetryPhase {
    /// The next retry waits for its time.
    Waiting,
    /// The provider is being asked and has shown nothing yet.
    Asking,
}
