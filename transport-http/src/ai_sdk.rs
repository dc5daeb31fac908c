//! Routes for `useChat` of Vercel's AI SDK, below `/api/chat`.

use axum::{
    Json, Router,
    extract::{RawPathParams, Request, State},
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use everturn_dialect::{
    ai_sdk::{Ask, ChatRequest, Chunks, Place, Version, queued},
    conversation_of,
};
use everturn_orchestrator::{Cursor, Error, Orchestrator, RetryTurn, StartTurn, Started};
use everturn_wire::{ConversationId, Image, Stopped};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    answer::Answer,
    api::Api,
    body::Unread,
    call::chat::{CONVERSATION_ID, Sent, UNBUFFERED},
    chat_client::{Answered, Plain, answer_approval, end_turn, model},
    events::Events,
    query::Parameters,
    refusal::Refusal,
};

/// A header that identifies this kind of stream.
const STREAM: (HeaderName, &str) = (HeaderName::from_static("x-vercel-ai-ui-message-stream"), "v1");

/// The client recorded with a person's decision.
const VIA: &str = "ai-sdk";

/// Why a call is closed without a result.
const LATE: &str = "this request for approval is no longer open";

/// Whether this path belongs to this protocol.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_prefix("/api/chat").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/chat", post(chat))
        .route("/api/chat/{id}/stream", get(resume))
        .route("/api/chat/{id}/stop", post(stop))
}

/// `POST /api/chat`: takes a message, one to answer again, or answers to requests for approval.
async fn chat(State(api): State<Api>, parameters: Parameters, request: Request) -> Result<Response, Plain> {
    let version = version(&parameters)?;
    let sent = Sent::of(request.headers())?;
    let body = Unread::of(request, &api).await?;
    let mut asked = ChatRequest::read(&body.bytes).map_err(Refusal::bad)?;
    drop(body);
    asked.model = model(&api.orchestrator, asked.model)?;
    // Before the turn, so that a refused request starts nothing.
    let place = api.stream_place()?;
    let call = Call { api: &api, version, place };
    let rest = call.respond(&asked).await?;
    match &asked.ask {
        Ask::Continue => Ok(call.rest(&asked, rest).await?),
        Ask::Message { text, images } => call.begin(&asked, text, images, sent).await,
        Ask::Again { place, is_edited, text, images } => {
            let found = find(&api.orchestrator, &asked.conversation_id, place).await?;
            let Some(seq) = found else { return call.begin(&asked, text, images, sent).await };
            let mut what = RetryTurn::message(seq);
            what.text = is_edited.then(|| text.clone());
            (what.model, what.retry, what.approvals) = (asked.model, asked.retry, asked.approvals);
            let started = api.orchestrator.retry_with(&asked.conversation_id, what).await?;
            call.follow(started).await
        }
    }
}

/// `GET /api/chat/{id}/stream`: streams the running turn from its start.
async fn resume(
    State(api): State<Api>,
    parameters: Parameters,
    path: RawPathParams,
) -> Result<Response, Plain> {
    let version = version(&parameters)?;
    let id = conversation(&path);
    let place = api.stream_place()?;
    Call { api: &api, version, place }.running(&id).await
}

/// `POST /api/chat/{id}/stop`: ends the running turn. Closing the connection does not.
async fn stop(State(api): State<Api>, path: RawPathParams) -> Result<Json<Stopped>, Plain> {
    let conversation_id = conversation(&path);
    let aborted_turn = end_turn(&api.orchestrator, &conversation_id).await?;
    Ok(Json(Stopped { conversation_id, aborted_turn }))
}

/// A call that is answered with a stream.
struct Call<'a> {
    api: &'a Api,
    version: Version,
    place: OwnedSemaphorePermit,
}

/// The rest of a turn whose requests for approval were answered.
struct Rest {
    events: Events,
    chunks: Chunks,
    bytes: Vec<u8>,
    has_answered: bool,
}

impl Call<'_> {
    /// Starts a turn, or queues the message if one is running.
    async fn begin(
        self,
        asked: &ChatRequest,
        text: &str,
        images: &[Image],
        sent: Sent,
    ) -> Result<Response, Plain> {
        let (orchestrator, id) = (&self.api.orchestrator, &asked.conversation_id);
        let mut start = StartTurn::new(text).images(images.to_vec()).conversation(id.clone());
        (start.model, start.reasoning_effort) = (asked.model.clone(), asked.reasoning_effort.clone());
        (start.retry, start.idempotency_key) = (asked.retry.clone(), sent.key);
        start.approvals = asked.approvals.unwrap_or_default();
        match orchestrator.start(start.trace(sent.trace)).await {
            Ok(started) => self.follow(started).await,
            Err(Error::Busy { .. }) if images.is_empty() => {
                let told = orchestrator.enqueue(id, text.to_owned(), None).await?;
                match told.started_turn {
                    true => self.running(id).await,
                    false => Ok(response(id, queued(&told))),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Streams a turn from its start.
    async fn follow(self, started: Started) -> Result<Response, Plain> {
        let id = started.conversation_id;
        let events = self.api.orchestrator.subscribe(&id, Some(started.from), true).await?;
        let mut bytes = Vec::new();
        let chunks = Chunks::new(self.version, &id, &started.turn_id, &mut bytes);
        Ok(self.answer(&id, Events::of(events), chunks, bytes))
    }

    /// Streams the running turn from its start, if there is one.
    async fn running(self, id: &ConversationId) -> Result<Response, Plain> {
        let running = match Events::of_running(&self.api.orchestrator, id).await {
            Err(Error::UnknownConversation { .. }) => None,
            running => running?,
        };
        let Some((turn_id, events)) = running else { return Ok(StatusCode::NO_CONTENT.into_response()) };
        let mut bytes = Vec::new();
        let chunks = Chunks::new(self.version, id, &turn_id, &mut bytes);
        Ok(self.answer(id, events, chunks, bytes))
    }

    /// Answers the client's requests for approval.
    async fn respond(&self, asked: &ChatRequest) -> Result<Option<Rest>, Error> {
        let (orchestrator, id) = (&self.api.orchestrator, &asked.conversation_id);
        if asked.responses.is_empty() {
            return Ok(None);
        }
        // Subscribe before answering, so that nothing that follows is missed.
        let events = match orchestrator.subscribe(id, Some(Cursor::from_value(u64::MAX)), true).await {
            // The answers belong to a conversation that is gone, and the message starts it again.
            Err(Error::UnknownConversation { .. }) if asked.ask != Ask::Continue => return Ok(None),
            events => events?,
        };
        let pending = orchestrator.approvals(id).await?.pending;
        let mut bytes = Vec::new();
        let known = asked.known_calls.iter().cloned();
        let mut chunks = Chunks::continued(self.version, known, &pending, &mut bytes);
        let mut has_answered = false;
        for response in &asked.responses {
            let answered = Answered {
                call: &response.id,
                approved: response.approved,
                reason: response.reason.as_deref(),
                via: VIA,
            };
            match answer_approval(orchestrator, id, &pending, answered).await? {
                Some(counted) => has_answered |= counted,
                None => chunks.close_call(&response.id, LATE, &mut bytes),
            }
        }
        Ok(Some(Rest { events: Events::of(events), chunks, bytes, has_answered }))
    }

    /// Streams what follows the answers.
    async fn rest(self, asked: &ChatRequest, rest: Option<Rest>) -> Result<Response, Error> {
        let id = &asked.conversation_id;
        let Some(Rest { events, mut chunks, mut bytes, has_answered }) = rest else {
            return Ok(StatusCode::NO_CONTENT.into_response());
        };
        if !has_answered && !self.api.orchestrator.status(id).await?.is_active {
            chunks.finish(&mut bytes);
        }
        Ok(self.answer(id, events, chunks, bytes))
    }

    fn answer(self, id: &ConversationId, events: Events, chunks: Chunks, bytes: Vec<u8>) -> Response {
        response(id, Answer::new(self.api, id.clone(), events, chunks, bytes, self.place).body())
    }
}

/// Returns the message to answer again.
async fn find(orchestrator: &Orchestrator, id: &ConversationId, place: &Place) -> Result<Option<u64>, Error> {
    let turns = match orchestrator.metrics(id).await {
        Err(Error::UnknownConversation { .. }) => return Ok(None),
        turns => turns?,
    };
    Ok(place.find(&turns, &orchestrator.user_messages(id).await?))
}

fn response(id: &ConversationId, body: impl Into<axum::body::Body>) -> Response {
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache"), UNBUFFERED, STREAM];
    let mut response = (headers, body.into()).into_response();
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
