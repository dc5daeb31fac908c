//! A failure: a diagnosed provider error, as data.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// What kind of failure it is. Decides, together with `retryable`, what a turn does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Our own rate limit at the provider; passes by itself.
    RateLimited,
    /// The provider's capacity; passes by itself.
    Overloaded,
    /// The provider broke.
    ServerError,
    /// The connection could not be made or was cut.
    Network,
    /// Nothing arrived in time.
    Timeout,
    /// The answer could not be understood, was cut short or was empty.
    InvalidResponse,
    /// A plan, credit or daily wall; waiting in this turn does not help.
    QuotaExhausted,
    /// The request has more tokens than the model takes.
    ContextOverflow,
    /// The provider refuses the request as it is.
    InvalidRequest,
    /// No such model or address.
    NotFound,
    /// Refused for what it says.
    ContentPolicy,
    /// The credential is missing, wrong or expired.
    Auth,
    /// The credential is good but may not do this.
    Permission,
    /// Cancelled by the caller or the provider's operator.
    Cancelled,
    /// A fault on our own side of the wire, such as a panic in a provider adapter.
    Internal,
    /// Not recognized.
    Unknown,
}

/// A diagnosed provider error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What kind of failure it is.
    pub category: Category,
    /// Whether the same request with the same credential can succeed later in the same turn.
    pub retryable: bool,
    /// The wait that the provider asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_ms: Option<u64>,
    /// The HTTP status as text, when one was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider's error, verbatim but capped and with secrets removed, e.g. `HTTP 429: {"error":...}`.
    pub message: String,
    /// The provider's own type or code of the error, e.g. `overloaded_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// What a person can do about it, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Failure {
    /// A failure with nothing but its kind and its message.
    pub fn new(category: Category, retryable: bool, message: impl Into<String>) -> Self {
        Self {
            category,
            retryable,
            hint_ms: None,
            code: None,
            message: message.into(),
            provider_code: None,
            advice: None,
        }
    }
}
