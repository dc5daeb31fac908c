//! Routes for `useChat` of Vercel's AI SDK, below `/api/chat`.

mod call;
mod socket;

use axum::{
    Json, Router,
    body::Body,
    extract::{RawPathParams, Request},
    http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::{any, get, post},
};
use everturn_dialect::{
    ai_sdk::{ChatRequest, Version},
    conversation_of,
};
use everturn_transport_ws::Sockets;
use everturn_wire::{ConversationId, Stopped};

use crate::{
    api::{Api, Doors},
    body::Unread,
    call::chat::{CONVERSATION_ID, Sent, UNBUFFERED},
    chat_client::{Plain, end_turn},
    query::Parameters,
    refusal::Refusal,
};
use call::Answer;
use socket::ChatSocket;

/// A header that identifies this kind of stream.
const STREAM: (HeaderName, &str) = (HeaderName::from_static("x-vercel-ai-ui-message-stream"), "v1");

/// Whether this path belongs to this protocol.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_prefix("/api/chat").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn routes() -> Router<Doors> {
    Router::new()
        .route("/api/chat", post(chat))
        .route("/api/chat/{id}/stream", get(resume))
        .route("/api/chat/{id}/stop", post(stop))
}

/// `GET /api/chat/ws`: all of these over one WebSocket.
pub(crate) fn socket_route(sockets: Sockets) -> Router<Doors> {
    let upgrade = async move |api: Api, request: Request| {
        sockets.upgrade_to(request, api.orchestrator.clone(), ChatSocket { api }).await
    };
    Router::new().route("/api/chat/ws", any(upgrade))
}

/// `POST /api/chat`: takes a message, one to answer again, or answers to requests for approval.
async fn chat(api: Api, parameters: Parameters, request: Request) -> Result<Response, Plain> {
    let version = version(&parameters)?;
    let sent = Sent::of(request.headers())?;
    let body = Unread::of(request, &api).await?;
    let asked = ChatRequest::read(&body.bytes).map_err(Refusal::bad)?;
    drop(body);
    Ok(response(call::answer(&api, version, asked, sent).await?))
}

/// `GET /api/chat/{id}/stream`: streams the running turn from its start.
async fn resume(api: Api, parameters: Parameters, path: RawPathParams) -> Result<Response, Plain> {
    let version = version(&parameters)?;
    Ok(response(call::running(&api, version, &conversation(&path)).await?))
}

/// `POST /api/chat/{id}/stop`: ends the running turn. Closing the connection does not.
async fn stop(api: Api, path: RawPathParams) -> Result<Json<Stopped>, Plain> {
    let conversation_id = conversation(&path);
    let aborted_turn = end_turn(&api.orchestrator, &conversation_id).await?;
    Ok(Json(Stopped { conversation_id, aborted_turn }))
}

fn response(answer: Answer) -> Response {
    let (id, body) = match answer {
        Answer::Stream(id, pieces) => (id, Body::from_stream(pieces)),
        Answer::Whole(id, bytes) => (id, bytes.into()),
        Answer::Nothing => return StatusCode::NO_CONTENT.into_response(),
    };
    let headers = [(CONTENT_TYPE, "text/event-stream"), UNBUFFERED, STREAM];
    let mut response = (headers, body).into_response();
    response.headers_mut().extend(HeaderValue::from_str(id.as_str()).ok().map(|id| (CONVERSATION_ID, id)));
    response
}

/// Returns the conversation for the client's id in the path.
fn conversation(path: &RawPathParams) -> ConversationId {
    conversation_of(path.iter().next().map_or("", |(_, id)| id))
}

fn version(parameters: &Parameters) -> Result<Version, Refusal> {
    let Some(asked) = parameters.text("ui")? else { return Ok(Version::default()) };
    Version::of(asked).ok_or_else(|| Refusal::bad(format!("ui must be 5, 6 or 7, not {asked:?}")))
}
