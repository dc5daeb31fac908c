//! OpenAI's Chat Completions API below `/v1`. A request is passed through if it can be; otherwise it becomes a turn, and
//! its client does not see waits.

mod answer;
mod error;
mod leaving;
mod whole;

use std::time::{SystemTime, UNIX_EPOCH};

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::Response,
    routing::post,
};
use everturn_dialect::openai::{ChatRequest, Chunks, Completion, Head, Refusal, resolve};
use everturn_orchestrator::{Error, StartTurn, Started, View};

use crate::{
    api::{Api, Doors},
    body::{self, Unread},
    call::chat::{CONVERSATION_ID, Sent, start},
    control::Control,
    pass,
};
use answer::Answer;
pub(crate) use error::refused;
use leaving::Leaving;

/// The header with the turn's id, which clients show in error reports.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header that names the fields of the request without effect.
const IGNORED: HeaderName = HeaderName::from_static("everturn-ignored");

/// Whether this path belongs to this API.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/")
}

pub(crate) fn routes() -> Router<Doors> {
    Router::new().route("/v1/chat/completions", post(chat))
}

/// Returns the response for a model that there is not.
pub(crate) fn unknown_model(id: &str, known: &[String]) -> Response {
    error::response(&Refusal::unknown_model(id, known))
}

/// `POST /v1/chat/completions`
async fn chat(api: Api, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let (bytes, room) = match body::whole(body, &api).await {
        Ok(whole) => whole,
        Err(why) => return error::refused(why),
    };
    if let Some(known) = pass::passing_chat(&api, &head, &bytes) {
        drop(room);
        return pass::chat(&api, head, bytes, known).await;
    }
    let body = Unread::read(&head.headers, bytes, room).map_err(error::of_call);
    let answered = async { completions(&api, &head.headers, body?).await };
    answered.await.unwrap_or_else(|why| error::response(&why))
}

/// Answers a request by a turn.
async fn completions(api: &Api, headers: &HeaderMap, body: Unread) -> Result<Response, Refusal> {
    let Sent { key, trace } = Sent::of(headers).map_err(error::of_call)?;
    let control = Control::of(headers).map_err(error::of_call)?;
    let named = conversation(headers)?;
    let mut asked = ChatRequest::read(&body.bytes, named.as_deref())?;
    // The body's reservation ends when it has been read.
    drop(body);
    let shown = take_model(&api.orchestrator, &mut asked)?;
    asked.holds_text |= control.whole;
    let stops = asked.stops_on_disconnect(key.is_some());
    let whole = asked.is_whole();
    let ChatRequest { send, stream, include_usage, holds_text, bare, ignored, .. } = asked;
    // Before the turn, so that a refused request starts nothing.
    let place = api.stream_place().map_err(error::of_call)?;
    let mut start = start(send, key).trace(trace);
    (start.bare, start.whole) = (bare, whole);
    obey(control, &mut start);
    let orchestrator = api.orchestrator.clone();
    // In its own task: a turn whose client disconnects while it begins is stopped, too.
    let begun = tokio::spawn(async move {
        let started = orchestrator.start(start).await?;
        let leaving = Leaving::of(&orchestrator, &started, stops);
        Ok((started, leaving))
    });
    let begun = begun.await.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Err(Error::ShuttingDown),
    });
    let (started, leaving) = begun.map_err(error::of_orchestrator)?;
    let id = &started.conversation_id;
    let events =
        api.orchestrator.subscribe(id, Some(started.from), true).await.map_err(error::of_orchestrator)?;
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let head = Head::new(&started.turn_id, shown, created);
    let mut response = match stream {
        true => {
            let chunks = Chunks::new(&head, include_usage, holds_text);
            Answer::new(events, chunks, leaving, place, api.limits.heartbeat).response().await?
        }
        false => whole::answer(events, Completion::new(head), leaving).await?,
    };
    let headers = response.headers_mut();
    name(&started, headers);
    if !ignored.is_empty() {
        headers.extend(HeaderValue::try_from(ignored.join(", ")).ok().map(|names| (IGNORED, names)));
    }
    Ok(response)
}

/// Applies what the headers ask for. Settings in the body are stronger.
fn obey(control: Control, start: &mut StartTurn) {
    let Control { budget, quota, whole: _, priority } = control;
    (start.budget, start.priority) = (budget, priority);
    if quota.is_some() {
        let retry = start.retry.get_or_insert_default();
        retry.quota = retry.quota.or(quota);
    }
}

/// Replaces the model by its id, and returns the client's name for it.
fn take_model(orchestrator: &View, asked: &mut ChatRequest) -> Result<String, Refusal> {
    let models = orchestrator.models();
    let Some(named) = asked.send.model.take() else {
        return Ok(models.into_iter().next().unwrap_or_default());
    };
    let model = resolve(&named, &models).ok_or_else(|| Refusal::unknown_model(&named, &models))?;
    asked.send.model = Some(model.to_owned());
    Ok(named)
}

/// Returns the conversation named in a header.
fn conversation(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut named = headers.get_all(CONVERSATION_ID).iter();
    let id = named.next().map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    match named.next() {
        Some(_) => Err(Refusal::new(400, "the header X-Conversation-Id is given more than once")),
        None => Ok(id),
    }
}

fn name(started: &Started, headers: &mut HeaderMap) {
    let names = [(CONVERSATION_ID, started.conversation_id.as_str()), (REQUEST_ID, started.turn_id.as_str())];
    for (name, id) in names {
        headers.extend(HeaderValue::from_str(id).ok().map(|id| (name, id)));
    }
}
