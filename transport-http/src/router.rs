//! The routes, and who may take them.

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    http::{Method, StatusCode, Uri},
    middleware::{Next, from_fn, map_response},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use everturn_orchestrator::{Orchestrator, Scope};
use everturn_transport_ws::Sockets;

use crate::{
    CallLimits, Metrics, ag_ui, ai_sdk,
    api::{Doors, caller},
    call::{chat, control, document, export, model_settings, passed, query, retry_settings},
    chat_client, models, openai, pass,
    refusal::Refusal,
    response_headers,
};

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
        .layer((map_response(response_headers::complete), DefaultBodyLimit::max(limits.body)))
        .with_state(Doors::new(orchestrator, limits, metrics))
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
        false => {
            refused(Refusal::new(StatusCode::FORBIDDEN, format!("this token {why}")), request.uri().path())
        }
    }
}

async fn unknown(uri: Uri) -> Response {
    let why = format!("not found: {}; see /openapi.json", uri.path());
    refused(Refusal::new(StatusCode::NOT_FOUND, why), uri.path())
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let why = format!("{} does not take {method}; /openapi.json lists what it takes", uri.path());
    refused(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, why), uri.path())
}

/// Returns an error response in the format expected at this path.
pub(crate) fn refused(refusal: Refusal, path: &str) -> Response {
    if let Some(dialect) = pass::dialect_of(path) {
        pass::refused(dialect, refusal)
    } else if openai::is_path(path) {
        openai::refused(refusal)
    } else if ai_sdk::is_path(path) || ag_ui::is_path(path) {
        chat_client::Plain::from(refusal).into_response()
    } else {
        refusal.into_response()
    }
}
