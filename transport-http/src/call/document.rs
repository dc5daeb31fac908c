//! Calls that return documents.

use axum::{
    http::{HeaderName, header::CONTENT_TYPE},
    response::IntoResponse,
};
use everturn_wire::document;

use crate::api::Api;

const JSON: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];
const PROMETHEUS: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];

/// `GET /openapi.json`
pub(crate) async fn openapi() -> impl IntoResponse {
    (JSON, document::OPENAPI)
}

/// `GET /asyncapi.json`
pub(crate) async fn asyncapi() -> impl IntoResponse {
    (JSON, document::ASYNCAPI)
}

/// `GET /schema.json`
pub(crate) async fn schema() -> impl IntoResponse {
    (JSON, document::SCHEMA)
}

/// `GET /metrics`
pub(crate) async fn metrics(api: Api) -> impl IntoResponse {
    (PROMETHEUS, api.metrics.render())
}
