//! Errors in the API's own form.

use everturn_wire::{Category, ErrorReport};
use serde_json::{Value, json};

use crate::failure::{brief, explanation};

const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

/// An error: what is wrong with a request, or why a turn failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status, where none was sent yet.
    pub status: u16,
    /// What is wrong and what to do.
    pub message: String,
    /// The kind of error, in the API's words.
    pub kind: &'static str,
    /// The parameter that is wrong.
    pub param: Option<String>,
    /// The error, for programs.
    pub code: Option<&'static str>,
}

impl Refusal {
    /// An error with this status; the kind follows from it.
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

    /// A parameter has a value that cannot be used.
    pub fn bad(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), code: Some("invalid_value"), ..Self::new(400, message) }
    }

    /// A parameter is known, and not supported here.
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: Some("unsupported_parameter"), ..Self::bad(param, message) }
    }

    /// Parameters, by their names in our own API, that a target does not have.
    pub fn unsupported_by(names: &[&str], target: &str) -> Self {
        let names: Vec<&str> = names.iter().map(|name| param_of(name)).collect();
        let message =
            format!("{target} does not support {}: leave it out, or choose another model", names.join(", "));
        Self::unsupported(*names.first().unwrap_or(&"model"), message)
    }

    /// There is no such model.
    pub fn unknown_model(asked: &str, known: &[String]) -> Self {
        let message = format!("unknown model {asked:?}; known models: {}", known.join(", "));
        let refusal = Self::new(404, message);
        Self { param: Some("model".to_owned()), code: Some("model_not_found"), ..refusal }
    }

    /// The failure that ended a turn.
    pub fn of_failure(report: &ErrorReport) -> Self {
        let (status, code) = status(report.category.unwrap_or(Category::Unknown));
        let refusal = Self::new(status, explanation(report));
        Self { code: Some(code), ..refusal }
    }

    /// The turn was stopped.
    pub(super) fn stopped() -> Self {
        let refusal = Self::new(503, "the turn was stopped before its end");
        Self { code: Some("turn_stopped"), ..refusal }
    }

    /// The object that the API wraps errors in.
    pub fn body(&self) -> Value {
        json!({ "error": { "message": self.message, "type": self.kind, "param": self.param, "code": self.code } })
    }
}

/// The status and the code of a turn that failed so. A provider that refuses the server's key is no fault of the client's.
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

/// What the API calls a parameter of ours.
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
