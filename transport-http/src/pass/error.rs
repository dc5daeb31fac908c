//! Errors of Everturn's own, in the form of a dialect.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse as _, Response},
};
use everturn_orchestrator::{Dialect, NoAnswer, RelayError};
use everturn_wire::{Category, Failure, Value};
use serde_json::json;

use crate::refusal::{self, Refusal};

/// Says why a call was ended.
pub(super) const ENDED: &str = "this token is no longer valid";

/// Returns the response for a request that was refused here.
pub(crate) fn refused(dialect: Dialect, why: Refusal) -> Response {
    let (status, why) = why.into_parts();
    response(dialect, status, why)
}

/// Returns the response for a call that was not begun.
pub(super) fn not_passed(dialect: Dialect, why: &RelayError) -> Response {
    let status = match why {
        RelayError::NoTarget(_) => StatusCode::NOT_FOUND,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = response(dialect, status, why.to_string());
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Returns the response for a call that ended without an answer by a provider.
pub(super) fn no_answer(dialect: Dialect, why: &NoAnswer) -> Response {
    match why {
        NoAnswer::Failed(failure) => {
            let mut response = response(dialect, status(failure), text(failure));
            if let Some(hint_ms) = failure.hint_ms.filter(|_| failure.category == Category::RateLimited) {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(hint_ms.div_ceil(1_000)));
            }
            response
        }
        NoAnswer::TokenEnded => response(dialect, StatusCode::UNAUTHORIZED, ENDED.to_owned()),
        _ => not_passed(dialect, &RelayError::ShuttingDown),
    }
}

/// Returns what a failure says. A rejected key is told as known from before, which is in the advice.
pub(super) fn text(failure: &Failure) -> String {
    let advice = failure.advice.as_ref().filter(|_| failure.category == Category::Auth);
    advice.map_or_else(|| failure.message.clone(), |advice| format!("{} {advice}", failure.message))
}

pub(super) fn status(failure: &Failure) -> StatusCode {
    // The code may also be a word, or the status of a stream that failed later.
    let own = || failure.code.as_ref()?.parse().ok().filter(StatusCode::is_client_error);
    match failure.category {
        Category::Auth | Category::Permission => own().unwrap_or(StatusCode::BAD_GATEWAY),
        Category::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Category::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Category::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Category::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

fn response(dialect: Dialect, status: StatusCode, why: String) -> Response {
    (status, Json(body(dialect, status, &refusal::shortened(why)))).into_response()
}

/// Statuses, as the Messages API and Gemini's name them.
const KINDS: [(u16, &str, &str); 9] = [
    (400, "invalid_request_error", "INVALID_ARGUMENT"),
    (401, "authentication_error", "UNAUTHENTICATED"),
    (403, "permission_error", "PERMISSION_DENIED"),
    (404, "not_found_error", "NOT_FOUND"),
    (413, "request_too_large", "INVALID_ARGUMENT"),
    (429, "rate_limit_error", "RESOURCE_EXHAUSTED"),
    (503, "overloaded_error", "UNAVAILABLE"),
    (504, "timeout_error", "DEADLINE_EXCEEDED"),
    (529, "overloaded_error", "UNAVAILABLE"),
];

/// Returns the body of an error.
pub(super) fn body(dialect: Dialect, status: StatusCode, message: &str) -> Value {
    let known = KINDS.iter().find(|(known, ..)| *known == status.as_u16());
    let (_, kind, name) = known.unwrap_or(&(0, "api_error", "INTERNAL"));
    match dialect {
        Dialect::Messages => json!({ "type": "error", "error": { "type": kind, "message": message } }),
        Dialect::Gemini => {
            json!({ "error": { "code": status.as_u16(), "message": message, "status": name } })
        }
        _ => {
            let kind = match status.as_u16() {
                401 | 429 => kind,
                400..=499 => "invalid_request_error",
                _ => "server_error",
            };
            json!({ "error": { "message": message, "type": kind, "param": null, "code": null } })
        }
    }
}
