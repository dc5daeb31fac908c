//! Failed attempts, kept for people to inspect.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{Because, Category, TurnId};

/// A provider call that failed, whether it was retried or ended its turn. Never sent to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailedAttempt {
    /// The turn.
    pub turn_id: TurnId,
    /// 0-based number of the step.
    pub step: u32,
    /// 0-based number of the attempt within its step, as `provider-retry` counts, without waits before which nobody was asked.
    pub attempt: u32,
    /// The target that was asked, as `provider/model`; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The category of the failure; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The HTTP status as text, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider's error, truncated to 500 characters.
    pub message: String,
    /// When it failed, in epoch milliseconds.
    pub failed_at: u64,
    /// Time from the call to its failure, in milliseconds; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The wait that was scheduled after it, in milliseconds; absent if it ended the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Why it waited that long; absent if it waited as its schedule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
}

/// Response of `GET /conversations/:id/attempts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attempts {
    /// The newest failed attempts, oldest first.
    pub attempts: Vec<FailedAttempt>,
    /// True if older ones were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
}
