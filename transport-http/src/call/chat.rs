//! Calls that are answered with events.

use axum::{
    extract::State,
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use everturn_orchestrator::{Cursor, Error, StartTurn};
use everturn_wire::SendRequest;

use crate::{
    api::Api,
    body::Json,
    path::Conversation,
    query::Parameters,
    refusal::Refusal,
    relay::{self, Format},
};

/// Names the conversation of a turn that was started.
const CONVERSATION_ID: HeaderName = HeaderName::from_static("x-conversation-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Some proxies gather an answer before they pass it on, unless they are told not to.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// `POST /chat`: starts a turn and follows it to its end.
pub(crate) async fn send(
    State(api): State<Api>,
    parameters: Parameters,
    Json(request): Json<SendRequest>,
) -> Result<Response, Refusal> {
    let extensions = parameters.flag("extensions")?.or(request.extensions).unwrap_or(false);
    // Before the turn: who is refused has started nothing.
    let place = api.stream_place()?;
    let mut start = StartTurn::new(request.message).images(request.images.unwrap_or_default());
    start.conversation_id = request.conversation_id;
    (start.model, start.reasoning_effort) = (request.model, request.reasoning_effort);
    start.retry = request.retry.map(|settings| *settings);
    start.approvals = request.approvals.unwrap_or_default();
    let started = api.orchestrator.start(start).await?;
    let id = started.conversation_id;
    let subscription = api.orchestrator.subscribe(&id, Some(started.from), extensions).await?;
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (CACHE_CONTROL, "no-store"), UNBUFFERED];
    let mut response = (headers, relay::body(subscription, Format::Ndjson, place)).into_response();
    if let Ok(id) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(CONVERSATION_ID, id);
    }
    Ok(response)
}

/// `GET /conversations/{id}/events`: follows a conversation, from turn to turn.
pub(crate) async fn events(
    State(api): State<Api>,
    Conversation(id): Conversation,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let extensions = parameters.flag("extensions")?.unwrap_or(false);
    let cursor = cursor(&parameters, &headers)?;
    let place = api.stream_place()?;
    let subscription = api.orchestrator.subscribe(&id, cursor, extensions).await?;
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store"), UNBUFFERED];
    let format = Format::Sse { heartbeat: api.limits.heartbeat };
    Ok((headers, relay::body(subscription, format, place)).into_response())
}

/// Where to go on. The header wins: a browser that reconnects sends the query it began with.
fn cursor(parameters: &Parameters, headers: &HeaderMap) -> Result<Option<Cursor>, Refusal> {
    let last = headers.get(LAST_EVENT_ID).map(|last| String::from_utf8_lossy(last.as_bytes()));
    let text = match &last {
        Some(last) => Some(last.as_ref()),
        None => parameters.text("cursor")?,
    };
    Ok(text.map(str::parse).transpose().map_err(Error::from)?)
}
