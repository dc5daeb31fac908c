//! Calls that return events.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use everturn_orchestrator::{Cursor, Error, StartTurn};
use everturn_wire::{SendRequest, TraceContext};

use crate::{
    api::Api,
    body::Named,
    path::Conversation,
    query::Parameters,
    refusal::Refusal,
    relay::{self, Format},
};

/// The header with the conversation of a started turn.
pub(crate) const CONVERSATION_ID: HeaderName = HeaderName::from_static("x-conversation-id");

/// Where the events of the turn begin, for clients that read them elsewhere.
const CURSOR: HeaderName = HeaderName::from_static("x-cursor");
/// The header that names a request, so that it is paid for once.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Tells proxies not to buffer the response.
pub(crate) const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// `POST /chat`: starts a turn, or finds the one that the same request started, and follows it to its end.
pub(crate) async fn send(
    api: Api,
    parameters: Parameters,
    headers: HeaderMap,
    request: Named<SendRequest>,
) -> Result<Response, Refusal> {
    let Sent { key, trace } = Sent::of(&headers)?;
    if key.is_some() || request.has_any(&SendRequest::SCOPED) {
        check_fields(&request)?;
    }
    let request = request.value;
    let extensions = parameters.flag("extensions")?.or(request.extensions).unwrap_or(false);
    // Before the turn, so that a refused request starts nothing.
    let place = api.stream_place()?;
    let started = api.orchestrator.start(start(request, key).trace(trace)).await?;
    let id = started.conversation_id;
    let subscription = api.orchestrator.subscribe(&id, Some(started.from), extensions).await?;
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), UNBUFFERED];
    let mut response = (headers, relay::body(subscription, Format::Ndjson, place)).into_response();
    if let Ok(id) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(CONVERSATION_ID, id);
    }
    if let Ok(from) = HeaderValue::from_str(&started.from.to_string()) {
        response.headers_mut().insert(CURSOR, from);
    }
    Ok(response)
}

/// Converts the request.
pub(crate) fn start(request: SendRequest, key: Option<String>) -> StartTurn {
    let parameters = request.parameters();
    let mut start = StartTurn::new(request.message).images(request.images.unwrap_or_default());
    start.conversation_id = request.conversation_id;
    (start.model, start.reasoning_effort) = (request.model, request.reasoning_effort);
    start.retry = request.retry.map(|settings| *settings);
    start.approvals = request.approvals.unwrap_or_default();
    start.final_report = request.final_report.map(|report| *report);
    start.model_settings = request.model_settings.map(|settings| *settings);
    start.priority = request.priority.unwrap_or_default();
    (start.history, start.tools) = (request.messages, request.tools);
    (start.parameters, start.idempotency_key) = (parameters, key);
    start.ephemeral = request.ephemeral.unwrap_or(false);
    start
}

/// Refuses unknown fields in a request that is more than a plain message.
fn check_fields(request: &Named<SendRequest>) -> Result<(), Refusal> {
    match request.beyond(&[&SendRequest::PLAIN, &SendRequest::SCOPED]) {
        Some(field) => {
            let known = SendRequest::PLAIN.iter().chain(&SendRequest::SCOPED).copied();
            let known = known.collect::<Vec<_>>().join(", ");
            Err(Refusal::bad(format!("{field:?} is not supported: leave it out; supported fields: {known}")))
        }
        None => Ok(()),
    }
}

/// The headers that concern the turn.
pub(crate) struct Sent {
    pub(crate) key: Option<String>,
    pub(crate) trace: Option<TraceContext>,
}

impl Sent {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        Ok(Self { key: idempotency_key(headers)?, trace: trace(headers) })
    }
}

/// Returns the trace that a request belongs to.
fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    TraceContext::read(text("traceparent")?, text("tracestate"))
}

/// Returns the idempotency key. The orchestrator validates it.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = keys.next().map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
    match keys.next() {
        Some(_) => Err(Refusal::bad("the header Idempotency-Key is given more than once")),
        None => Ok(key),
    }
}

/// `GET /conversations/{id}/events`: follows a conversation across turns.
pub(crate) async fn events(
    api: Api,
    Conversation(id): Conversation,
    parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let extensions = parameters.flag("extensions")?.unwrap_or(false);
    let cursor = cursor(&parameters, &headers)?;
    let place = api.stream_place()?;
    let subscription = api.orchestrator.subscribe(&id, cursor, extensions).await?;
    let headers = [(CONTENT_TYPE, "text/event-stream"), UNBUFFERED];
    let format = Format::Sse { heartbeat: api.limits.heartbeat };
    Ok((headers, relay::body(subscription, format, place)).into_response())
}

/// Returns the position to resume from. The header takes precedence, because a browser that reconnects repeats its
/// original query.
fn cursor(parameters: &Parameters, headers: &HeaderMap) -> Result<Option<Cursor>, Refusal> {
    let last = headers.get(LAST_EVENT_ID).map(|last| String::from_utf8_lossy(last.as_bytes()));
    let text = match &last {
        Some(last) => Some(last.as_ref()),
        None => parameters.text("cursor")?,
    };
    Ok(text.map(str::parse).transpose().map_err(Error::from)?)
}
