//! Errors in the API's format.

use std::borrow::Cow;

use everturn_wire::{Category, ErrorReport};
use serde_json::{Value, json};

use crate::failure::{brief, explanation};

const INVALID: &str = "invalid_request_error";
/// Words by which clients recognize a full context, together with the code.
const CONTEXT_WORDS: &str = "maximum context length";
/// The code for a turn that somebody stopped, which is not a passing failure.
const STOPPED: &str = "turn_stopped";
const SERVER: &str = "server_error";

/// An error: what is wrong with a request, or why a turn failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status, if none has been sent yet.
    pub status: u16,
    /// What is wrong, and what to do.
    pub message: String,
    /// The API's error type.
    pub kind: Cow<'static, str>,
    /// The invalid parameter.
    pub param: Option<String>,
    /// The error code, for programs.
    pub code: Option<Cow<'static, str>>,
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
        Self { status, message, kind: kind.into(), param: None, code: code.map(Into::into) }
    }

    /// Creates the error for a parameter with an invalid value.
    pub fn bad(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), code: Some("invalid_value".into()), ..Self::new(400, message) }
    }

    /// Creates the error for a parameter that is known but not supported.
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: Some("unsupported_parameter".into()), ..Self::bad(param, message) }
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
        Self { param: Some("model".to_owned()), code: Some("model_not_found".into()), ..refusal }
    }

    /// Converts the failure that ended a turn. Status, message, type, parameter and code are the provider's own, as far as
    /// it sent them.
    pub fn of_failure(report: &ErrorReport) -> Self {
        let category = report.category.unwrap_or(Category::Unknown);
        let (usual, usual_code) = status(category);
        let sent = report.code.as_deref().and_then(|code| code.parse().ok());
        let told = Told::of(&report.message);
        let mut message = told.message.unwrap_or_else(|| report.message.clone());
        let is_overflow = category == Category::ContextOverflow;
        if is_overflow && !message.to_lowercase().contains(CONTEXT_WORDS) {
            message = format!("This model's {CONTEXT_WORDS} is exceeded: {message}");
        }
        let message = explanation(&ErrorReport { message, ..report.clone() });
        let refusal = Self::new(sent.filter(|status| (400..600).contains(status)).unwrap_or(usual), message);
        let code = told.code.filter(|_| !is_overflow).map_or(Cow::Borrowed(usual_code), Cow::Owned);
        let kind = told.kind.map_or(refusal.kind, Cow::Owned);
        Self { code: Some(code), kind, param: told.param, ..refusal }
    }

    /// Returns the error for a client that has received part of the answer, in words that clients take for a passing
    /// failure if it is one: they know no status by then.
    pub(super) fn in_mid_answer(&self) -> Self {
        let mut refusal = self.clone();
        if self.status >= 500 && self.code.as_deref() != Some(STOPPED) {
            refusal.message = format!(
                "service unavailable: the answer was cut off, send the request again: {}",
                self.message
            );
            (refusal.kind, refusal.code) = (SERVER.into(), Some("service_unavailable".into()));
        }
        refusal
    }

    /// Creates the error for a stopped turn.
    pub(super) fn stopped() -> Self {
        let refusal = Self::new(503, "the turn was stopped before its end");
        Self { code: Some(STOPPED.into()), ..refusal }
    }

    /// Returns the API's error object.
    pub fn body(&self) -> Value {
        json!({ "error": { "message": self.message, "type": self.kind, "param": self.param, "code": self.code } })
    }
}

/// What a provider said, by the fields of its error object.
#[derive(Default)]
struct Told {
    message: Option<String>,
    kind: Option<String>,
    param: Option<String>,
    code: Option<String>,
}

impl Told {
    /// Reads a failure's message, such as `HTTP 401: {"error": {"message": ...}}`.
    fn of(message: &str) -> Self {
        let Some(json) = message.find('{').map(|start| &message[start..]) else { return Self::default() };
        let Ok(Value::Object(body)) = serde_json::from_str(json) else { return Self::default() };
        let Some(Value::Object(error)) = body.get("error") else { return Self::default() };
        let word = |name: &str| match error.get(name)? {
            Value::String(word) if !word.is_empty() => Some(brief(word.clone())),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        Self { message: word("message"), kind: word("type"), param: word("param"), code: word("code") }
    }
}

/// Returns the usual status and code for a failed turn, where the provider sent none.
fn status(category: Category) -> (u16, &'static str) {
    match category {
        Category::RateLimited => (429, "rate_limit_exceeded"),
        Category::QuotaExhausted => (429, "insufficient_quota"),
        Category::Overloaded => (503, "overloaded"),
        Category::Network => (503, "provider_unreachable"),
        Category::Cancelled => (503, STOPPED),
        Category::Timeout => (504, "provider_timeout"),
        Category::ContextOverflow => (400, "context_length_exceeded"),
        Category::InvalidRequest => (400, "provider_refused_request"),
        Category::ContentPolicy => (400, "content_policy_violation"),
        Category::NotFound => (404, "model_not_found"),
        Category::Auth => (401, "invalid_api_key"),
        Category::Permission => (403, "permission_denied"),
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
