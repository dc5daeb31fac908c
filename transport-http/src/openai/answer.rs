//! A streamed answer.

use std::time::Duration;

use axum::{
    body::Body,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use everturn_dialect::openai::{Chunks, Refusal};
use everturn_orchestrator::{Error, Frame, Subscription};
use futures_util::stream;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{Leaving, error};
use crate::{
    call::chat::UNBUFFERED,
    events::{Events, translate},
};

/// Maximum number of bytes sent together. Only events that are already available are combined.
const GATHERED: usize = 16 << 10;

/// A streamed answer. The client sets the pace: an event is taken only when there is room for it.
pub(super) struct Answer {
    events: Events,
    chunks: Chunks,
    leaving: Leaving,
    heartbeat: Duration,
    _place: OwnedSemaphorePermit,
}

impl Answer {
    pub(super) fn new(
        events: Subscription,
        chunks: Chunks,
        leaving: Leaving,
        place: OwnedSemaphorePermit,
        heartbeat: Duration,
    ) -> Self {
        Self { events: Events::of(events), chunks, leaving, heartbeat, _place: place }
    }

    /// Returns the response. If the turn fails before there is content, the response has the status of the failure.
    /// Otherwise, the stream begins with the first content, the first wait for a retry, or a long silence.
    pub(super) async fn response(mut self) -> Result<Response, Refusal> {
        let mut first = Vec::new();
        while first.is_empty() || (self.chunks.failure().is_some() && !self.chunks.is_over()) {
            first.append(&mut self.gather().await);
        }
        if let Some(why) = self.chunks.failure().filter(|_| !self.chunks.has_begun()) {
            return Err(why.clone());
        }
        let headers = [(CONTENT_TYPE, "text/event-stream"), UNBUFFERED];
        let state = (Some(first), self);
        let body = stream::unfold(state, async |(first, mut answer)| match first {
            Some(first) => Some((Ok(Bytes::from(first)), (None, answer))),
            None if answer.chunks.is_over() => None,
            None => Some((Ok::<_, Error>(answer.gather().await.into()), (None, answer))),
        });
        Ok((headers, Body::from_stream(body)).into_response())
    }

    /// Returns the next bytes: a comment after a long silence.
    async fn gather(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.is_empty() && !self.chunks.is_over() {
            let Ok(first) = timeout(self.heartbeat, self.events.next()).await else {
                self.chunks.keep_alive(&mut bytes);
                break;
            };
            self.take(first, &mut bytes);
            while !self.chunks.is_over()
                && bytes.len() < GATHERED
                && let Some(more) = self.events.ready()
            {
                self.take(more, &mut bytes);
            }
        }
        if self.chunks.is_over() {
            self.leaving.is_served();
        }
        bytes
    }

    fn take(&mut self, next: Result<Frame, Error>, bytes: &mut Vec<u8>) {
        match next {
            Ok(frame) => translate(&frame, |event| self.chunks.push(event, bytes)),
            Err(error) => {
                if let Some(why) = ends(error) {
                    self.chunks.fail(why, bytes);
                }
            }
        }
    }
}

/// Returns why a subscription error ends the answer; `None` if it does not.
pub(super) fn ends(error: Error) -> Option<Refusal> {
    match error {
        // The turn is not over, and continues when it can be saved again.
        Error::NotSaved { .. } => None,
        Error::ShuttingDown => {
            let why = "the server is shutting down, and the turn will resume after its restart: a request with the same \
                       Idempotency-Key will find it";
            Some(Refusal { code: Some("shutting_down".into()), ..Refusal::new(503, why) })
        }
        error => Some(error::of_orchestrator(error)),
    }
}
