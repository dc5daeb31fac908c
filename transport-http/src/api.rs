//! The routes.

use std::{convert::Infallible, ops::Deref, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, FromRequestParts, Request},
    http::{Method, StatusCode, Uri, request::Parts},
    middleware::{Next, from_fn, map_response},
    response::Response,
    routing::{delete, get, post},
};
use everturn_orchestrator::{Caller, Orchestrator, Scope, View};
use everturn_transport_ws::Sockets;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    CallLimits, Metrics, ag_ui, ai_sdk,
    call::{chat, control, document, export, model_settings, passed, query, retry_settings},
    models, openai, pass,
    refusal::Refusal,
    response_headers,
};

/// The state of all routes. What it serves is only reached through the view of a request's caller ([`Api`]).
#[derive(Clone)]
pub(crate) struct Doors {
    orchestrator: Orchestrator,
    pub(crate) room: Room,
}

/// What a request can reach: what its caller sees.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) orchestrator: View,
    room: Room,
}

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Room {
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

fn serve(orchestrator: Orchestrator, limits: CallLimits, metrics: Metrics, more: Router<Doors>) -> Router {
    let streams = Arc::new(Semaphore::new(limits.streams.min(Semaphore::MAX_PERMITS)));
    let bodies = Arc::new(Semaphore::new(limits.bodies.min(Semaphore::MAX_PERMITS)));
    let room = Room { limits, metrics, streams, bodies };
    let chat = chat_routes().merge(ai_sdk::routes()).merge(ag_ui::routes()).merge(more);
    let shared = shared_routes().merge(models::routes()).merge(openai::routes());
    // What is not said to be for others is the administrator's.
    administration()
        .route_layer(from_fn(is_administrator))
        .merge(chat.route_layer(from_fn(may_chat)))
        .merge(pass::routes().route_layer(from_fn(may_call)))
        .merge(shared.route_layer(from_fn(may_something)))
        .merge(open_routes())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(limits.body))
        .layer(map_response(response_headers::complete))
        .with_state(Doors { orchestrator, room })
}

/// Conversations.
fn chat_routes() -> Router<Doors> {
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
        .route("/conversations/{id}/model-settings", get(model_settings::read).post(model_settings::set))
        .route("/conversations/{id}/retry/abort", post(control::abort_retry))
        .route("/conversations/{id}/retry/now", post(control::retry_now))
        .route("/conversations/{id}/approvals", get(control::approvals).post(control::answer_approval))
        .route("/conversations/{id}/questions", post(control::answer_question))
        .route("/conversations/{id}/approvals/tools/{tool}", delete(control::revoke_tool))
        .route("/conversations/{id}/queue", post(control::enqueue))
        .route("/conversations/{id}/queue/{messageId}", delete(control::cancel_queued))
        .route("/tools", get(query::tools))
}

/// What every caller may use. The global retry settings are changed by the administrator alone: its view says so.
fn shared_routes() -> Router<Doors> {
    Router::new()
        .route("/calls", get(passed::list))
        .route("/calls/{id}/retry-now", post(passed::retry_now))
        .route("/calls/{id}/give-up", post(passed::give_up))
        .route("/models", get(query::models))
        .route("/targets", get(query::targets))
        .route("/usage", get(query::usage))
        .route("/retry", get(retry_settings::read).patch(retry_settings::change))
        .route("/openapi.json", get(document::openapi))
        .route("/asyncapi.json", get(document::asyncapi))
        .route("/schema.json", get(document::schema))
}

fn administration() -> Router<Doors> {
    Router::new().route("/cluster", get(query::cluster)).route("/metrics", get(document::metrics))
}

fn open_routes() -> Router<Doors> {
    Router::new().route("/health", get(query::health))
}

/// Returns who a request is by: the administrator, if nobody checked it.
pub(crate) fn caller(request: &Request) -> Caller {
    request.extensions().get().cloned().unwrap_or_else(Caller::administrator)
}

async fn may_chat(request: Request, next: Next) -> Response {
    only(caller(&request).may(Scope::Chat), "is not for conversations", request, next).await
}

async fn may_call(request: Request, next: Next) -> Response {
    only(caller(&request).may(Scope::Calls), "is not for calls to models", request, next).await
}

async fn may_something(request: Request, next: Next) -> Response {
    let caller = caller(&request);
    let may = caller.may(Scope::Chat) || caller.may(Scope::Calls);
    only(may, "is not for this", request, next).await
}

async fn is_administrator(request: Request, next: Next) -> Response {
    only(caller(&request).is_administrator(), "is not the administrator's", request, next).await
}

async fn only(may: bool, why: &str, request: Request, next: Next) -> Response {
    match may {
        true => next.run(request).await,
        false => Refusal::new(StatusCode::FORBIDDEN, format!("this token {why}")).at(request.uri().path()),
    }
}

impl FromRequestParts<Doors> for Api {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Infallible> {
        let caller = parts.extensions.get().cloned().unwrap_or_else(Caller::administrator);
        Ok(Self { orchestrator: doors.orchestrator.seen_by(&caller), room: doors.room.clone() })
    }
}

impl Deref for Api {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

impl Room {
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
