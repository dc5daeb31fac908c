//! Error responses.

use axum::{
    Json,
    extract::rejection::{BytesRejection, JsonRejection, QueryRejection, RawPathParamsRejection},
    http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE},
    response::{IntoResponse, Response},
};
use everturn_orchestrator::{Error, Fault};
use everturn_wire::ErrorBody;

/// Maximum length of an explanation, in bytes. It may contain a client's text of megabytes.
const MAX_EXPLANATION: usize = 1024;

/// An error response: a status, and `{"error": "..."}`.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    /// Creates a 400 response.
    pub(crate) fn bad(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }
}

/// Maps the orchestrator's errors to statuses.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.fault() {
            Fault::Caller => StatusCode::BAD_REQUEST,
            Fault::Missing => StatusCode::NOT_FOUND,
            Fault::Forbidden => StatusCode::FORBIDDEN,
            Fault::Conflict => StatusCode::CONFLICT,
            Fault::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Fault::Server => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if error.fault() == Fault::Server {
            tracing::error!(%error, "a call failed");
        }
        Self::new(status, error.to_string())
    }
}

macro_rules! from_rejection {
    ($($rejection:ty)*) => {
        $(impl From<$rejection> for Refusal {
            fn from(rejection: $rejection) -> Self {
                Self::new(rejection.status(), rejection.body_text())
            }
        })*
    };
}

from_rejection!(JsonRejection BytesRejection QueryRejection RawPathParamsRejection);

impl Refusal {
    /// Returns the status and the explanation.
    pub(crate) fn into_parts(self) -> (StatusCode, String) {
        (self.status, self.why)
    }

    /// Returns the explanation alone, shortened to a bounded length.
    pub(crate) fn into_text(self) -> String {
        shortened(self.why)
    }
}

/// Truncates an explanation.
pub(crate) fn shortened(mut why: String) -> String {
    if why.len() > MAX_EXPLANATION {
        why.truncate(why.floor_char_boundary(MAX_EXPLANATION));
        why.push('…');
    }
    why
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = shortened(self.why);
        let mut response = (self.status, Json(ErrorBody { error })).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
