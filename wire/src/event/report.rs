//! The failure that ends a turn, as it is told and as it is kept.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Category, RetryOutcome};

/// The failure that ends a turn, and what was done about it before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// The failure, verbatim.
    pub message: String,
    /// The HTTP code as text, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What kind of failure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// What a person can do about it, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// How many retries its step had before; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The sum of the scheduled waits before them, in milliseconds; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Why a retryable failure was not retried (again): `exhausted` or `too-long`. Absent where no retry helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RetryOutcome>,
    /// More about that, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl ErrorReport {
    /// A report of which nothing but the message is known.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}
