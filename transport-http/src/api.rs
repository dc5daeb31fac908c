//! The routes.

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{Method, StatusCode, Uri},
    middleware::map_response,
    response::Response,
    routing::{delete, get, post},
};
use everturn_orchestrator::Orchestrator;
use everturn_transport_ws::Sockets;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    CallLimits, Metrics, ag_ui, ai_sdk,
    call::{chat, control, document, export, passed, query, retry_settings},
    openai, pass,
    refusal::Refusal,
    response_headers,
};

/// The state shared by all calls.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) orchestrator: Orchestrator,
    pub(crate) limits: CallLimits,
    pub(crate) metrics: Metrics,
    streams: Arc<Semaphore>,
    /// Total size of incomplete request bodies that is still available, in bytes.
    bodies: Arc<Semaphore>,
}

/// Returns the router of all calls, with a fallback. A router that this one is merged into must not have a fallback of
/// its own.
pub fn router(orchestrator: Orchestrator, limits: CallLimits, metrics: Metrics) -> Router {
    serve(orchestrator, limits, metrics, Router::new())
}

/// Like [`router`], with `GET /api/chat/ws`, whose sockets count towards the limits of `sockets`.
pub fn router_with_sockets(
    orchestrator: Orchestrator,
    limits: CallLimits,
    metrics: Metrics,
    sockets: Sockets,
) -> Router {
    serve(orchestrator, limits, metrics, ai_sdk::socket_route(sockets))
}

fn serve(orchestrator: Orchestrator, limits: CallLimits, metrics: Metrics, more: Router<Api>) -> Router {
    let streams = Arc::new(Semaphore::new(limits.streams.min(Semaphore::MAX_PERMITS)));
    let bodies = Arc::new(Semaphore::new(limits.bodies.min(Semaphore::MAX_PERMITS)));
    Router::new()
        .route("/chat", post(chat::send))
        .route("/conversations", get(query::conversations))
        .route("/conversations/{id}", get(query::history).patch(control::rename).delete(control::remove))
        .route("/conversations/{id}/export", get(export::export))
        .route("/conversations/{id}/status", get(query::status))
        .route("/conversations/{id}/metrics", get(query::metrics))
        .route("/conversations/{id}/turns/{turnId}", get(query::turn))
        .route("/conversations/{id}/attempts", get(query::attempts))
        .route("/conversations/{id}/events", get(chat::events))
        .route("/conversations/{id}/stop", post(control::stop))
        .route("/conversations/{id}/close", post(control::close))
        .route("/conversations/{id}/compact", post(control::compact))
        .route(
            "/conversations/{id}/retry",
            post(control::retry)
                .get(retry_settings::read_of_conversation)
                .patch(retry_settings::change_of_conversation),
        )
        .route("/retry", get(retry_settings::read).patch(retry_settings::change))
        .route("/conversations/{id}/retry/abort", post(control::abort_retry))
        .route("/conversations/{id}/retry/now", post(control::retry_now))
        .route("/conversations/{id}/approvals", get(control::approvals).post(control::answer_approval))
        .route("/conversations/{id}/approvals/tools/{tool}", delete(control::revoke_tool))
        .route("/conversations/{id}/queue", post(control::enqueue))
        .route("/conversations/{id}/queue/{messageId}", delete(control::cancel_queued))
        .route("/calls", get(passed::list))
        .route("/calls/{id}/retry-now", post(passed::retry_now))
        .route("/calls/{id}/give-up", post(passed::give_up))
        .route("/models", get(query::models))
        .route("/targets", get(query::targets))
        .route("/cluster", get(query::cluster))
        .route("/tools", get(query::tools))
        .route("/health", get(query::health))
        .route("/openapi.json", get(document::openapi))
        .route("/asyncapi.json", get(document::asyncapi))
        .route("/schema.json", get(document::schema))
        .route("/metrics", get(document::metrics))
        .merge(openai::routes())
        .merge(pass::routes())
        .merge(ai_sdk::routes())
        .merge(ag_ui::routes())
        .merge(more)
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(limits.body))
        .layer(map_response(response_headers::complete))
        .with_state(Api { orchestrator, limits, metrics, streams, bodies })
}

impl Api {
    /// Reserves one of the allowed streams; held as long as the stream.
    pub(crate) fn stream_place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            let most = self.limits.streams;
            let why = format!("the server has reached its limit of {most} event streams: try again later");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    /// Reserves space for a request body; held until the body is read.
    pub(crate) fn body_room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.bodies.clone().try_acquire_many_owned(bytes).map_err(|_| {
            let why = "too many large request bodies are arriving at once: try again later";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }
}

async fn unknown(uri: Uri) -> Response {
    let why = format!("not found: {}; see /openapi.json", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, why).at(uri.path())
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let why = format!("{} does not take {method}; /openapi.json lists what it takes", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, why).at(uri.path())
}
