//! Errors in the API's format.

use everturn_wire::{Category, ErrorReport};
use serde_json::{Value, json};

use crate::failure::{brief, explanation};

const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

/// An error: what is wrong with a request, or why a turn failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status, if none has been sent yet.
    pub status: u16,
    /// What is wrong, and what to do.
    pub message: String,
    /// The API's error type.
    pub kind: &'static str,
    /// The invalid parameter.
    pub param: Option<String>,
    /// The error code, for programs.
    pub code: Option<&'static str>,
}

impl Refusal {
    /// Creates an error with this status, which determines the type.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        let (kind, code) = match status {
            401 => (INVALID, Some("invalid_api_key")),
            403 => ("permission_error", None),
            429 => ("rate_limit_error", Some("rate_limit_exceeded")),
            500.. => (SERVER, None),
            _ => (INVALID, None),
        };
        let message = brief(message.into());
        Self { status, message, kind, param: None, code }
    }

    /// Creates the error for a parameter with an invalid value.
    pub fn bad(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), code: Some("invalid_value"), ..Self::new(400, message) }
    }

    /// Creates the error for a parameter that is known but not supported.
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: Some("unsupported_parameter"), ..Self::bad(param, message) }
    }

    /// Creates the error for parameters, given by their native names, that a target does not support.
    pub fn unsupported_by(names: &[&str], target: &str) -> Self {
        let names: Vec<&str> = names.iter().map(|name| param_of(name)).collect();
        let message =
            format!("{target} does not support {}: leave it out, or choose another model", names.join(", "));
        Self::unsupported(*names.first().unwrap_or(&"model"), message)
    }

    /// Creates the error for an unknown model.
    pub fn unknown_model(asked: &str, known: &[String]) -> Self {
        let message = format!("unknown model {asked:?}; known models: {}", known.join(", "));
        let refusal = Self::new(404, message);
        Self { param: Some("model".to_owned()), code: Some("model_not_found"), ..refusal }
    }

    /// Converts the failure that ended a turn.
    pub fn of_failure(report: &ErrorReport) -> Self {
        let (status, code) = status(report.category.unwrap_or(Category::Unknown));
        let refusal = Self::new(status, explanation(report));
        Self { code: Some(code), ..refusal }
    }

    /// Creates the error for a stopped turn.
    pub(super) fn stopped() -> Self {
        let refusal = Self::new(503, "the turn was stopped before its end");
        Self { code: Some("turn_stopped"), ..refusal }
    }

    /// Returns the API's error object.
    pub fn body(&self) -> Value {
        json!({ "error": { "message": self.message, "type": self.kind, "param": self.param, "code": self.code } })
    }
}

/// Returns the status and code for a failed turn. It is not the client's fault if a provider rejects the server's key.
fn status(category: Category) -> (u16, &'static str) {
    match category {
        Category::RateLimited => (429, "rate_limit_exceeded"),
        Category::QuotaExhausted => (429, "insufficient_quota"),
        Category::Overloaded => (503, "overloaded"),
        Category::Network => (503, "provider_unreachable"),
        Category::Cancelled => (503, "turn_stopped"),
        Category::Timeout => (504, "provider_timeout"),
        Category::ContextOverflow => (400, "context_length_exceeded"),
        Category::InvalidRequest => (400, "provider_refused_request"),
        Category::ContentPolicy => (400, "content_policy_violation"),
        Category::NotFound => (404, "model_not_found"),
        Category::Auth => (502, "provider_refused_key"),
        Category::Permission => (502, "provider_denied_permission"),
        Category::Internal => (500, "internal_error"),
        _ => (502, "provider_error"),
    }
}

/// Returns the API's name for a native parameter.
fn param_of(name: &str) -> &str {
    match name {
        "topP" => "top_p",
        "toolChoice" => "tool_choice",
        "responseFormat" => "response_format",
        "maxOutputTokens" => "max_completion_tokens",
        "parallelToolCalls" => "parallel_tool_calls",
        "presencePenalty" => "presence_penalty",
        "frequencyPenalty" => "frequency_penalty",
        other => other,
    }
}
