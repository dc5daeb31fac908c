//! Handles requests that arrive over HTTP or a WebSocket.

use bytes::Bytes;
use everturn_dialect::ai_sdk::{Ask, ChatRequest, Chunks, Version, queued};
use everturn_orchestrator::{Error, RetryTurn, StartTurn, Started, SubscribeFrom};
use everturn_wire::{ConversationId, Image};
use futures_util::stream::BoxStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    answer,
    api::Api,
    call::chat::Sent,
    chat_client::{Answered, NO_KEY, answer_approval, find_message, model},
    events::{Events, Running},
    refusal::Refusal,
};

/// The client recorded with a person's decision.
const VIA: &str = "ai-sdk";

/// Why a call is closed without a result.
const LATE: &str = "this request for approval is no longer open";

/// The answer to a request.
pub(super) enum Answer {
    /// A stream, in pieces of complete events.
    Stream(ConversationId, BoxStream<'static, Result<Bytes, Error>>),
    /// A stream that is already complete.
    Whole(ConversationId, Vec<u8>),
    /// No turn is running.
    Nothing,
}

/// Answers a message, a repetition, or answers to requests for approval.
pub(super) async fn answer(
    api: &Api,
    version: Version,
    mut asked: ChatRequest,
    sent: Sent,
) -> Result<Answer, Refusal> {
    if sent.key.is_some() && matches!(asked.ask, Ask::Again { .. }) {
        return Err(Refusal::bad(NO_KEY));
    }
    asked.model = model(&api.orchestrator, asked.model)?;
    // Before the turn starts, so that a rejected request starts nothing.
    let place = api.stream_place()?;
    let call = Call { api, version, place };
    let rest = call.respond(&asked).await?;
    match &asked.ask {
        Ask::Continue => Ok(call.rest(&asked, rest).await?),
        Ask::Message { text, images } => Ok(call.begin(&asked, text, images, sent).await?),
        Ask::Again { place, is_edited, text, images } => {
            let found = find_message(&api.orchestrator, &asked.conversation_id, place).await?;
            let Some(seq) = found else { return Ok(call.begin(&asked, text, images, sent).await?) };
            let mut what = RetryTurn::message(seq);
            (what.text, what.images) = is_edited.then(|| (text.clone(), images.clone())).unzip();
            (what.model, what.reasoning_effort) = (asked.model, asked.reasoning_effort);
            (what.retry, what.approvals) = (asked.retry, asked.approvals);
            let started = api.orchestrator.retry_with(&asked.conversation_id, what).await?;
            Ok(call.follow(started).await?)
        }
    }
}

/// Streams the running turn from its start.
pub(super) async fn running(api: &Api, version: Version, id: &ConversationId) -> Result<Answer, Refusal> {
    let place = api.stream_place()?;
    Ok(Call { api, version, place }.running(id).await?)
}

/// A call that is answered with a stream.
struct Call<'a> {
    api: &'a Api,
    version: Version,
    place: OwnedSemaphorePermit,
}

/// The remaining events of a turn whose requests for approval were answered.
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
    ) -> Result<Answer, Error> {
        let (orchestrator, id) = (&self.api.orchestrator, &asked.conversation_id);
        let mut start = StartTurn::new(text).images(images.to_vec()).conversation(id.clone());
        (start.model, start.reasoning_effort) = (asked.model.clone(), asked.reasoning_effort.clone());
        (start.retry, start.idempotency_key) = (asked.retry.clone(), sent.key);
        start.approvals = asked.approvals.unwrap_or_default();
        // A queued message has no key, so a repeated request would add it again.
        let can_wait = images.is_empty() && start.idempotency_key.is_none();
        match orchestrator.start(start.trace(sent.trace)).await {
            Ok(started) => self.follow(started).await,
            Err(Error::Busy { .. }) if can_wait => {
                let told = orchestrator.enqueue(id, text.to_owned(), None).await?;
                let running = if told.started_turn { self.running(id).await? } else { Answer::Nothing };
                // The message must not be answered with nothing, even if its turn has ended already.
                Ok(match running {
                    Answer::Nothing => Answer::Whole(id.clone(), queued(&told)),
                    running => running,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Streams a turn from its start.
    async fn follow(self, started: Started) -> Result<Answer, Error> {
        let id = started.conversation_id;
        let events = self.api.orchestrator.subscribe(&id, Some(started.from), true).await?;
        let mut bytes = Vec::new();
        let chunks = Chunks::new(self.version, &id, &started.turn_id, &mut bytes);
        Ok(self.answer(&id, Events::of(events), chunks, bytes))
    }

    /// Streams the running turn from its start, if there is one.
    async fn running(self, id: &ConversationId) -> Result<Answer, Error> {
        let running = match Events::of_running(&self.api.orchestrator, id).await {
            Err(Error::UnknownConversation { .. }) => None,
            running => running?,
        };
        let Some(Running { turn_id, events, .. }) = running else { return Ok(Answer::Nothing) };
        let mut bytes = Vec::new();
        let chunks = Chunks::new(self.version, id, &turn_id, &mut bytes);
        Ok(self.answer(id, events, chunks, bytes))
    }

    /// Answers the requests for approval that the client received.
    async fn respond(&self, asked: &ChatRequest) -> Result<Option<Rest>, Error> {
        let (orchestrator, id) = (&self.api.orchestrator, &asked.conversation_id);
        if asked.responses.is_empty() {
            return Ok(None);
        }
        // Subscribe before answering, so that no event is missed.
        let events = match orchestrator.subscribe(id, SubscribeFrom::End, true).await {
            // The conversation no longer exists, so the message starts it anew.
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
    async fn rest(self, asked: &ChatRequest, rest: Option<Rest>) -> Result<Answer, Error> {
        let id = &asked.conversation_id;
        let Some(Rest { events, mut chunks, mut bytes, has_answered }) = rest else {
            return Ok(Answer::Nothing);
        };
        if !has_answered && !self.api.orchestrator.status(id).await?.is_active {
            chunks.finish(&mut bytes);
        }
        Ok(self.answer(id, events, chunks, bytes))
    }

    fn answer(self, id: &ConversationId, events: Events, chunks: Chunks, bytes: Vec<u8>) -> Answer {
        let answer = answer::Answer::new(self.api, id.clone(), events, chunks, bytes, self.place);
        Answer::Stream(id.clone(), answer.pieces())
    }
}
