//! Bodies of requests to the server itself, and its refusals.

use std::time::Duration;

use axum::{
    Json,
    body::{Body, to_bytes},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Maximum size of a request body in bytes, and time for it.
const BODY: usize = 64 << 10;
const BODY_TIME: Duration = Duration::from_secs(15);

/// Reads a JSON object. `shape`: what it must have, in words.
///
/// # Errors
/// A refusal, which never quotes the body.
pub(crate) async fn read<T: DeserializeOwned>(body: Body, shape: &str) -> Result<T, Response> {
    let Ok(bytes) = timeout(BODY_TIME, to_bytes(body, BODY)).await else {
        return Err(refusal(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time"));
    };
    let bytes = bytes.map_err(|_| {
        refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request body was cut off, or is longer than {BODY} bytes"),
        )
    })?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let why = format!("the request body must be a JSON object {shape} (line {line}, column {column})");
        refusal(StatusCode::UNPROCESSABLE_ENTITY, why)
    })
}

pub(crate) fn refusal(status: StatusCode, why: impl Into<String>) -> Response {
    let error = everturn_wire::ErrorBody { error: why.into() };
    (status, Json(error)).into_response()
}
