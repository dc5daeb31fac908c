//! The failure that ends a turn, as sent and as stored.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Category, RetryOutcome};

/// The failure that ends a turn, and the retries that preceded it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// The provider's error, verbatim.
    pub message: String,
    /// The HTTP status as text, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The category of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// What the user can do about it, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Number of retries of the step before it; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Sum of their scheduled waits, in milliseconds; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Why a retryable failure was not retried further: `exhausted` or `too-long`. Absent if it is not retryable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RetryOutcome>,
    /// Details about `outcome`, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Set if an image was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_image: Option<RejectedImage>,
}

/// A provider rejected a request because of an image in it. Later requests to this model have a note in place of the
/// images added since its last answer, or of all images if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RejectedImage {
    /// The model that rejected it, by its id. Absent if unknown: then no model receives the image again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl ErrorReport {
    /// Creates a report with a message and no details.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}
