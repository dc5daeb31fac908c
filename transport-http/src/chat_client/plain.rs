//! Errors as plain text, which these clients show to users.

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{CACHE_CONTROL, WWW_AUTHENTICATE},
    },
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
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
