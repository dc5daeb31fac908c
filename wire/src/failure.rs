//! A failure: a diagnosed provider error, as data.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// The category of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Category {
    /// A rate limit of this client; temporary.
    RateLimited,
    /// The provider lacks capacity; temporary.
    Overloaded,
    /// An internal error of the provider.
    ServerError,
    /// The connection failed or was dropped.
    Network,
    /// Nothing arrived in time.
    Timeout,
    /// The answer was malformed, truncated or empty.
    InvalidResponse,
    /// A plan, credit or daily quota is exhausted; waiting within this turn does not help.
    QuotaExhausted,
    /// The request exceeds the model's context window.
    ContextOverflow,
    /// The provider rejects the request as invalid.
    InvalidRequest,
    /// The model or URL does not exist.
    NotFound,
    /// The content was refused.
    ContentPolicy,
    /// The credential is missing, wrong or expired.
    Auth,
    /// The credential is valid but lacks the permission.
    Permission,
    /// Cancelled by the caller or the provider's operator.
    Cancelled,
    /// A fault in Everturn itself, such as a panic in a provider adapter.
    Internal,
    /// Not recognized, or a category from a newer version.
    #[serde(other)]
    Unknown,
}

impl Category {
    /// Returns the value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::InvalidResponse => "invalid_response",
            Self::QuotaExhausted => "quota_exhausted",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::ContentPolicy => "content_policy",
            Self::Auth => "auth",
            Self::Permission => "permission",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
            Self::Unknown => "unknown",
        }
    }
}

/// A diagnosed provider error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Its category.
    pub category: Category,
    /// Whether the same request with the same credential can succeed later in the turn.
    pub retryable: bool,
    /// The wait that the provider asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_ms: Option<u64>,
    /// The HTTP status as text, if one was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider's error, verbatim but capped and with secrets removed, e.g. `HTTP 429: {"error":...}`.
    pub message: String,
    /// The provider's own error type or code, e.g. `overloaded_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// What the user can do about it, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Why the request did not reach the provider, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreached: Option<Unreached>,
    /// Whether the provider rejected the request because of an image in it, as far as is known.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub rejects_image: bool,
}

/// Why a request did not reach the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Unreached {
    /// No route to the host.
    NoRoute,
    /// The host name did not resolve.
    NoName,
    /// No connection could be established in time.
    NoConnection,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

impl Failure {
    /// Creates a failure with a category and a message.
    pub fn new(category: Category, retryable: bool, message: impl Into<String>) -> Self {
        Self {
            category,
            retryable,
            hint_ms: None,
            code: None,
            message: message.into(),
            provider_code: None,
            advice: None,
            unreached: None,
            rejects_image: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_is_named_as_on_the_wire() {
        let words = ["rate_limited", "overloaded", "server_error", "network", "timeout", "invalid_response"];
        let more = ["quota_exhausted", "context_overflow", "invalid_request", "not_found", "content_policy"];
        let last = ["auth", "permission", "cancelled", "internal", "unknown"];
        for word in words.into_iter().chain(more).chain(last) {
            let category: Category = serde_json::from_value(word.into()).expect("a category");
            assert_eq!(category.as_str(), word);
        }
    }
}
