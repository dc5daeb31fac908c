//! The retries of the current step.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::Because;
use crate::Category;

/// The retries of a step, from its first failure until part of an answer is shown or the step is given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryState {
    /// Whether the retry is waiting or the provider has been called.
    pub phase: RetryPhase,
    /// 0-based number of the retry within its step.
    pub attempt: u32,
    /// Scheduled length of the wait before it, in milliseconds.
    pub delay_ms: u64,
    /// When the wait ends, in epoch milliseconds; absent while `asking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<u64>,
    /// Maximum number of retries; absent if unbounded, or if this retry does not count against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The category of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The provider's error, verbatim; absent if the turn was saved by a version that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The HTTP status as text, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The target that the retry asks, as `provider/model`; absent if the turn has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// True if this turn made no call, because others were refused or come first. The wait uses up no attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// Why it waits; absent if it waits as its schedule says, or if a version sent it that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
}

/// The phase of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RetryPhase {
    /// The wait before the retry is in progress.
    Waiting,
    /// The provider has been called and nothing of its answer has been shown.
    Asking,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
