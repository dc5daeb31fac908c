//! Errors as plain text, which these clients show to users.

use axum::{
    http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE},
    response::{IntoResponse, Response},
};

use crate::refusal::{Refusal, shortened};

/// An error response with a status and a text.
#[derive(Debug)]
pub(crate) struct Plain(StatusCode, String);

impl<E: Into<Refusal>> From<E> for Plain {
    fn from(why: E) -> Self {
        let (status, why) = why.into().into_parts();
        Self(status, shortened(why))
    }
}

impl IntoResponse for Plain {
    fn into_response(self) -> Response {
        let Self(status, why) = self;
        let mut response = (status, why).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
