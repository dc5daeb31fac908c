//! The conversations that a socket watches.

use std::{
    future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use everturn_orchestrator::{Cursor, Error, Frame, Subscription};
use everturn_wire::ConversationId;
use futures_util::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use tokio_stream::StreamMap;

/// The conversations that a socket watches, each once, polled in turn so that none starves the others.
#[derive(Default)]
pub(crate) struct Watches {
    all: StreamMap<ConversationId, Watch>,
}

/// One watched conversation.
pub(crate) struct Watch {
    /// The position after the last event taken.
    pub(crate) cursor: Cursor,
    pub(crate) extensions: bool,
    events: BoxStream<'static, Result<Frame, Error>>,
}

impl Watches {
    pub(crate) fn get(&self, id: &ConversationId) -> Option<&Watch> {
        self.all.iter().find_map(|(watched, watch)| (watched == id).then_some(watch))
    }

    /// Whether this conversation is watched with extensions; without an id, whether any is.
    pub(crate) fn has_extensions(&self, id: Option<&ConversationId>) -> bool {
        self.all.iter().any(|(watched, watch)| watch.extensions && id.is_none_or(|id| watched == id))
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Watches a conversation, replacing an existing watch of it.
    pub(crate) fn insert(&mut self, id: ConversationId, subscription: Subscription, extensions: bool) {
        self.all.insert(id, Watch::new(subscription, extensions));
    }

    pub(crate) fn remove(&mut self, id: &ConversationId) {
        self.all.remove(id);
    }

    /// Returns the next event of any of them. After a permanent error, the conversation is no longer watched. Pending
    /// while none is watched.
    pub(crate) async fn next(&mut self) -> (ConversationId, Result<Frame, Error>) {
        match self.all.next().await {
            Some(event) => event,
            None => future::pending().await,
        }
    }
}

impl Watch {
    fn new(subscription: Subscription, extensions: bool) -> Self {
        let cursor = subscription.cursor();
        let events = stream::unfold(Some(subscription), |subscription| async {
            let mut subscription = subscription?;
            match subscription.next().await {
                Ok(frame) => Some((Ok(frame), Some(subscription))),
                // The socket is about to be closed, which tells the peer.
                Err(Error::ShuttingDown) => None,
                // The peer receives the error, and then what follows from it.
                Err(error @ (Error::NotSaved { .. } | Error::Broken { .. })) => {
                    Some((Err(error), Some(subscription)))
                }
                Err(error) => Some((Err(error), None)),
            }
        });
        Self { cursor, extensions, events: events.boxed() }
    }
}

impl Stream for Watch {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.events.poll_next_unpin(cx));
        if let Some(Ok(frame)) = &event {
            self.cursor = frame.end();
        }
        Poll::Ready(event)
    }
}
