//! Request bodies.

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;

/// A JSON body; what is wrong with one is said in our own dialect.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let axum::Json(body) = axum::Json::from_request(request, state).await?;
        Ok(Self(body))
    }
}
