//! Errors in this API's format.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header::WWW_AUTHENTICATE},
    response::{IntoResponse as _, Response},
};
use everturn_dialect::openai::Refusal;
use everturn_orchestrator::Error;

use crate::refusal;

/// Tells clients not to retry, because retrying was done here and would only start again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Converts an error to a response.
pub(super) fn response(why: &Refusal) -> Response {
    let status = StatusCode::from_u16(why.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(why.body())).into_response();
    let headers = response.headers_mut();
    headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Converts a refusal of the server itself, for access control or unknown paths.
pub(crate) fn refused(why: refusal::Refusal) -> Response {
    response(&of_call(why))
}

pub(super) fn of_call(why: refusal::Refusal) -> Refusal {
    let (status, why) = why.into_parts();
    Refusal::new(status.as_u16(), why)
}

pub(super) fn of_orchestrator(error: Error) -> Refusal {
    let coded =
        |code: &'static str, error: Error| Refusal { code: Some(code.into()), ..of_call(error.into()) };
    match error {
        Error::UnknownModel { model, known } => Refusal::unknown_model(&model, &known),
        Error::UnsupportedParameter { names, target } => Refusal::unsupported_by(&names, &target),
        Error::BadRetrySettings(why) => Refusal::bad("everturn", why.to_string()),
        Error::Busy { .. } => coded("conversation_busy", error),
        Error::KeyUsed { .. } => coded("idempotency_key_used", error),
        Error::ShuttingDown => coded("shutting_down", error),
        error => of_call(error.into()),
    }
}
