//! Streams a turn's events in a dialect, until the turn ends or waits only for people.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use everturn_dialect::{Event, Translator};
use everturn_orchestrator::{Error, Frame};
use everturn_wire::{ConversationId, ConversationStatus, EventBody};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use crate::{
    api::Api,
    events::{Events, translate},
};

/// Maximum number of bytes sent together. Only events that are already available are combined.
const GATHERED: usize = 16 << 10;

/// An answer being sent. The client sets the pace: an event is taken only when there is room for it.
pub(crate) struct Answer<T> {
    api: Api,
    id: ConversationId,
    events: Events,
    translator: T,
    heartbeat: Duration,
    /// Bytes written and not yet sent.
    bytes: Vec<u8>,
    /// Whether the turn may be waiting only for people.
    may_wait: bool,
    /// Why nothing more can be sent.
    cut: Option<Error>,
    _place: OwnedSemaphorePermit,
}

impl<T: Translator + 'static> Answer<T> {
    /// Creates an answer that begins with `bytes`.
    pub(crate) fn new(
        api: &Api,
        id: ConversationId,
        events: Events,
        translator: T,
        bytes: Vec<u8>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let heartbeat = api.limits.heartbeat;
        Self {
            api: api.clone(),
            id,
            events,
            translator,
            heartbeat,
            bytes,
            may_wait: true,
            cut: None,
            _place: place,
        }
    }

    /// Returns the response body.
    pub(crate) fn body(self) -> Body {
        Body::from_stream(self.pieces())
    }

    /// Returns the whole answer in pieces of complete frames. A shutdown cuts it off, so that the client notices and
    /// reconnects. Cancel-safe: dropping the future of a piece loses nothing.
    pub(crate) fn pieces(self) -> BoxStream<'static, Result<Bytes, Error>> {
        let pieces = stream::unfold(self, async |mut answer| {
            if let Some(error) = answer.cut.take() {
                return Some((Err(error), answer));
            }
            match answer.gather().await {
                bytes if bytes.is_empty() && answer.cut.is_none() => None,
                bytes => Some((Ok(bytes), answer)),
            }
        });
        pieces.boxed()
    }

    /// Returns the next bytes: a comment after a long silence, nothing at the end.
    async fn gather(&mut self) -> Bytes {
        let mut bytes = std::mem::take(&mut self.bytes);
        loop {
            while self.goes_on()
                && bytes.len() < GATHERED
                && let Some(next) = self.events.ready()
            {
                self.take(next, &mut bytes);
            }
            // Not before everything that precedes the wait is sent.
            if bytes.len() < GATHERED && std::mem::take(&mut self.may_wait) {
                self.look(&mut bytes).await;
            }
            if !bytes.is_empty() || !self.goes_on() {
                return bytes.into();
            }
            match timeout(self.heartbeat, self.events.next()).await {
                Ok(next) => self.take(next, &mut bytes),
                Err(_) => self.translator.keep_alive(&mut bytes),
            }
        }
    }

    fn goes_on(&self) -> bool {
        !self.translator.is_over() && self.cut.is_none()
    }

    fn take(&mut self, next: Result<Frame, Error>, bytes: &mut Vec<u8>) {
        match next {
            Ok(frame) => translate(&frame, |event| {
                self.translator.push(event, bytes);
                self.may_wait |= may_begin_to_wait(event);
            }),
            // The turn is not over, and continues when it can be saved again.
            Err(Error::NotSaved { .. }) => {}
            Err(Error::ShuttingDown) => self.cut = Some(Error::ShuttingDown),
            Err(error) => self.translator.fail(&error.to_string(), bytes),
        }
    }

    /// Ends the answer if the turn waits only for people, who answer with another request. In a replay, an earlier wait
    /// is recognized by the requests that were open then.
    async fn look(&mut self, bytes: &mut Vec<u8>) {
        let asked = self.translator.asked();
        if asked.is_empty() || self.translator.is_over() {
            return;
        }
        let Ok(state) = self.api.orchestrator.status(&self.id).await else { return };
        let waits = state.status == ConversationStatus::Queued
            // A tool that asks is running.
            && state.questions.is_none()
            && state.approvals.is_some_and(|pending| asked.is_all_of(&pending));
        if waits {
            self.translator.wait_for_people(bytes);
        }
    }
}

/// Whether a turn may wait only for people after this event. A replay of old events has no statuses.
fn may_begin_to_wait(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Other(
            EventBody::Status { status: ConversationStatus::Queued, .. }
                | EventBody::ApprovalRequested { .. }
                | EventBody::ToolResult { .. }
        )
    )
}
