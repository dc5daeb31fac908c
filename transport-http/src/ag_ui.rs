//! AG-UI at `/ag-ui`, and the routes of CopilotKit's runtime below `/copilotkit`.

mod copilot_kit;

use axum::{
    Json, Router,
    extract::{RawPathParams, Request},
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::post,
};
use everturn_dialect::{
    ag_ui::{Head, Kept, Run, RunRequest, history, queued},
    conversation_of,
};
use everturn_orchestrator::{Error, RetryTurn, StartTurn, Started, SubscribeFrom, Take, Window};
use everturn_wire::{Chunk, ConversationId, Image, Role, Stopped};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    answer::Answer,
    api::{Api, Doors},
    body::Unread,
    call::chat::{CONVERSATION_ID, Sent, UNBUFFERED},
    chat_client::{Answered, NO_KEY, Plain, answer_approval, end_turn, find_message, model},
    events::{Events, Running},
    refusal::Refusal,
};

/// The client recorded with a person's decision.
const VIA: &str = "ag-ui";

/// Maximum number of chunks of a message searched for its text. No message has more images.
const MESSAGE: usize = 32;

/// Whether this path belongs to these protocols.
pub(crate) fn is_path(path: &str) -> bool {
    ["/ag-ui", "/copilotkit"]
        .iter()
        .any(|base| path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

pub(crate) fn routes() -> Router<Doors> {
    Router::new()
        .route("/ag-ui", post(run))
        .route("/ag-ui/{threadId}/stop", post(stop))
        .merge(copilot_kit::routes())
}

/// `POST /ag-ui`: takes a message, one to answer again, or answers to requests for approval.
async fn run(api: Api, request: Request) -> Result<Response, Plain> {
    let sent = Sent::of(request.headers())?;
    let body = Unread::of(request, &api).await?;
    let asked = RunRequest::read(&body.bytes).map_err(Refusal::bad)?;
    drop(body);
    start(&api, asked, sent).await
}

/// Starts the run that a request asks for.
async fn start(api: &Api, mut asked: RunRequest, sent: Sent) -> Result<Response, Plain> {
    asked.model = model(&api.orchestrator, asked.model.take())?;
    // Before the turn, so that a refused request starts nothing.
    let place = api.stream_place()?;
    let call = Call { api, place };
    if !asked.resume.is_empty() {
        return call.resume(asked, sent.key.is_some()).await;
    }
    let Some((text, images)) = asked.message.take() else {
        return Err(Refusal::bad(
            "the last message must be the user's, or resume must answer the interrupts",
        )
        .into());
    };
    // With a key, the turn is found by it, or is a new one.
    let stands = match sent.key {
        Some(_) if asked.is_edit => return Err(Refusal::bad(NO_KEY).into()),
        Some(_) => None,
        None => call.stands(&asked, &text, &images).await?,
    };
    if let Some(seq) = stands {
        let mut what = RetryTurn::message(seq);
        if asked.is_edit {
            // A client that connected was not told of the images, so it cannot send them again.
            (what.text, what.images) = (Some(text), Some(images).filter(|images| !images.is_empty()));
        }
        (what.model, what.reasoning_effort) = (asked.model.clone(), asked.reasoning_effort.clone());
        (what.retry, what.approvals) = (asked.retry.clone(), asked.approvals);
        let started = api.orchestrator.retry_with(&asked.conversation_id, what).await?;
        return Ok(call.follow(asked, started).await?);
    }
    let mut start = StartTurn::new(text.clone()).images(images).conversation(asked.conversation_id.clone());
    (start.model, start.reasoning_effort) = (asked.model.clone(), asked.reasoning_effort.clone());
    (start.retry, start.idempotency_key) = (asked.retry.clone(), sent.key);
    start.approvals = asked.approvals.unwrap_or_default();
    // A queued message has no key, so a repeated request would add it again.
    let can_wait = start.images.is_empty() && start.idempotency_key.is_none();
    match api.orchestrator.start(start.trace(sent.trace)).await {
        Ok(started) => Ok(call.follow(asked, started).await?),
        Err(Error::Busy { .. }) if can_wait => Ok(call.queue(asked, text).await?),
        Err(error) => Err(error.into()),
    }
}

/// `POST /ag-ui/{threadId}/stop`: ends the running turn. Closing the connection does not.
async fn stop(api: Api, path: RawPathParams) -> Result<Json<Stopped>, Plain> {
    let conversation_id = conversation_of(parameter(&path, "threadId"));
    let aborted_turn = end_turn(&api.orchestrator, &conversation_id).await?;
    Ok(Json(Stopped { conversation_id, aborted_turn }))
}

/// A call that is answered with a stream.
struct Call<'a> {
    api: &'a Api,
    place: OwnedSemaphorePermit,
}

impl Call<'_> {
    /// Returns the `seq` of the message if the conversation has it at its position: it is then answered again. Another one there is
    /// superseded only by a client that asks for it; the list of any other may be out of date.
    async fn stands(&self, asked: &RunRequest, text: &str, images: &[Image]) -> Result<Option<u64>, Error> {
        let (orchestrator, id) = (&self.api.orchestrator, &asked.conversation_id);
        let Some(seq) = find_message(orchestrator, id, &asked.place).await? else { return Ok(None) };
        if asked.is_edit {
            return Ok(Some(seq));
        }
        // The client may send only its last message, which may be equal to an earlier one.
        if !asked.has_answer_before && orchestrator.user_messages(id).await?.last() != Some(&seq) {
            return Ok(None);
        }
        let window = Window {
            since_seq: Some(seq - 1),
            limit: Some(MESSAGE),
            take: Take::Oldest,
            ..Window::default()
        };
        let chunks = orchestrator.history(id, window).await?.chunks;
        let (mut said, mut shown) = ("", Vec::new());
        for stored in chunks.iter().take_while(|stored| stored.role == Role::User) {
            match &*stored.chunk {
                Chunk::Image { url, mime_type } => {
                    shown.push(Image { url: url.clone(), mime_type: mime_type.clone() });
                }
                Chunk::Text { text } => {
                    said = text;
                    break;
                }
                _ => {}
            }
        }
        // A client that connected was not told of the images.
        Ok((said == text && (images.is_empty() || images == shown)).then_some(seq))
    }

    /// Streams a turn from its start.
    async fn follow(self, asked: RunRequest, started: Started) -> Result<Response, Error> {
        let id = started.conversation_id;
        let events = self.api.orchestrator.subscribe(&id, Some(started.from), true).await?;
        let mut bytes = Vec::new();
        let run = Run::new(asked.head, &started.turn_id, asked.kept, &mut bytes);
        Ok(self.answer(&id, Events::of(events), run, bytes))
    }

    /// Queues the message behind the running turn, unless that has ended meanwhile.
    async fn queue(self, asked: RunRequest, text: String) -> Result<Response, Error> {
        let id = &asked.conversation_id;
        let told = self.api.orchestrator.enqueue(id, text, None).await?;
        let running = match told.started_turn {
            true => Events::of_running(&self.api.orchestrator, id).await?,
            false => None,
        };
        let Some(Running { turn_id, events, .. }) = running else {
            return Ok(response(id, queued(&asked.head, &told)));
        };
        let mut bytes = Vec::new();
        let run = Run::new(asked.head, &turn_id, asked.kept, &mut bytes);
        Ok(self.answer(&asked.conversation_id, events, run, bytes))
    }

    /// Answers the requests for approval, and streams what follows.
    async fn resume(self, mut asked: RunRequest, has_key: bool) -> Result<Response, Plain> {
        let message = asked.message.take();
        let (orchestrator, id) = (&self.api.orchestrator, &asked.conversation_id);
        // Subscribe before answering, so that nothing that follows is missed.
        let events = orchestrator.subscribe(id, SubscribeFrom::End, true).await?;
        let pending = orchestrator.approvals(id).await?.pending;
        // Before the answers, so that the model receives it with the results. A client may repeat the turn's own message.
        if let Some((text, images)) = message
            && (asked.is_edit || self.stands(&asked, &text, &images).await?.is_none())
        {
            if has_key || asked.is_edit || !images.is_empty() {
                let why = "a message with resume is queued, so it must have no images, no Idempotency-Key and no edit";
                return Err(Refusal::bad(why).into());
            }
            orchestrator.enqueue(id, text, None).await?;
        }
        let mut has_answered = false;
        for entry in &asked.resume {
            let answered = Answered {
                call: &entry.id,
                approved: entry.approved,
                reason: entry.reason.as_deref(),
                via: VIA,
            };
            has_answered |= answer_approval(orchestrator, id, &pending, answered).await?.unwrap_or(false);
        }
        let Some(open) = pending.first().filter(|_| has_answered) else {
            // Somebody else has answered, so the client has missed what followed.
            return Ok(self.connect(asked.head, id).await?);
        };
        let mut bytes = Vec::new();
        let run = Run::continued(asked.head, &open.turn_id, &pending, asked.kept, &mut bytes);
        Ok(self.answer(&asked.conversation_id, Events::of(events), run, bytes))
    }

    /// Streams the conversation so far, and the running turn from its start.
    async fn connect(self, head: Head, id: &ConversationId) -> Result<Response, Error> {
        let orchestrator = &self.api.orchestrator;
        let mut bytes = Vec::new();
        let running = match Events::of_running(orchestrator, id).await {
            Err(Error::UnknownConversation { .. }) => {
                let mut run = Run::new(head, &"none".into(), Kept::none(), &mut bytes);
                run.finish(&mut bytes);
                return Ok(response(id, bytes));
            }
            running => running?,
        };
        // What the turn adds is streamed, also if it has ended meanwhile.
        let mut before_seq = None;
        if let Some(Running { turn_id, .. }) = &running {
            let turn_seq = orchestrator.status(id).await?.turn_seq;
            let sealed = orchestrator.metrics(id).await?.into_iter().find(|turn| turn.turn_id == *turn_id);
            before_seq = sealed.map_or(turn_seq, |turn| turn.first_seq);
        }
        let limits = &self.api.limits;
        let window = Window {
            before_seq,
            limit: Some(limits.chunks),
            max_bytes: Some(limits.window.saturating_mul(4)),
            ..Window::default()
        };
        let told = orchestrator.history(id, window).await?;
        let supersedes = running.as_ref().and_then(|running| running.supersedes);
        let messages = history(&told.chunks, &told.turns.unwrap_or_default(), supersedes);
        let Some(Running { turn_id, events, .. }) = running else {
            let mut run = Run::connected(head, &"none".into(), &messages, &mut bytes);
            run.finish(&mut bytes);
            return Ok(response(id, bytes));
        };
        let run = Run::connected(head, &turn_id, &messages, &mut bytes);
        Ok(self.answer(id, events, run, bytes))
    }

    fn answer(self, id: &ConversationId, events: Events, run: Run, bytes: Vec<u8>) -> Response {
        response(id, Answer::new(self.api, id.clone(), events, run, bytes, self.place).body())
    }
}

fn response(id: &ConversationId, body: impl Into<axum::body::Body>) -> Response {
    let headers = [(CONTENT_TYPE, "text/event-stream"), UNBUFFERED];
    let mut response = (headers, body.into()).into_response();
    response.headers_mut().extend(HeaderValue::from_str(id.as_str()).ok().map(|id| (CONVERSATION_ID, id)));
    response
}

fn parameter<'p>(path: &'p RawPathParams, name: &str) -> &'p str {
    path.iter().find(|(parameter, _)| *parameter == name).map_or("", |(_, value)| value)
}
