//! What goes out to a peer, as fast as it takes it.

use std::future::poll_fn;

use axum::{
    Error,
    extract::ws::{Message, WebSocket},
};
use futures_util::{SinkExt as _, stream::SplitSink};
use tokio::{
    task::yield_now,
    time::{Duration, Instant, timeout_at},
};

use crate::protocol::News;

/// Why nothing can be sent any more.
pub(crate) enum Stuck {
    /// The peer takes nothing, or too slowly.
    Slow,
    /// The connection is gone.
    Gone,
}

impl From<Error> for Stuck {
    fn from(_: Error) -> Self {
        Self::Gone
    }
}

/// Pongs that may wait for a peer that does not read: then nothing more is read from it.
const MAX_PONGS: usize = 32;
/// Maximum number of times the task yields before it takes the next event, while events arrive without a pause: what other
/// tasks produce meanwhile is joined into one event.
const MAX_PAUSES: u8 = 7;
/// Maximum number of messages the socket buffers before they are flushed.
const MAX_UNFLUSHED: u8 = 12;
/// Every 16th message, other news is checked before events.
const OTHERS_FIRST: u8 = 16;

/// The way out to a peer: an answer first, else whatever event comes next.
///
/// An event is taken only when the socket has room for it. What waits is bounded: one answer, one event, and the bytes
/// that the socket gathers before it writes.
pub(crate) struct Outbox {
    sink: SplitSink<WebSocket, Message>,
    answer: Option<Message>,
    /// Pongs that the protocol put into the socket's buffer since it was last written out.
    pongs: usize,
    /// Messages that the socket took and has not flushed yet.
    unflushed: u8,
    /// How often to yield before the next event; zero unless events arrive without a pause.
    pauses: u8,
    /// Messages that the socket took, as a count that wraps.
    taken: u8,
    /// When the socket took the last message.
    took: Instant,
    patience: Duration,
}

impl Outbox {
    pub(crate) fn new(sink: SplitSink<WebSocket, Message>, patience: Duration) -> Self {
        Self {
            sink,
            answer: None,
            pongs: 0,
            unflushed: 0,
            pauses: 0,
            taken: 0,
            took: Instant::now(),
            patience,
        }
    }

    /// Whether the last answer is on its way, so that there is room for another.
    pub(crate) fn has_room(&self) -> bool {
        self.answer.is_none() && self.pongs < MAX_PONGS
    }

    /// A ping was read, so that a pong waits to be written.
    pub(crate) fn owes_pong(&mut self) {
        self.pongs += 1;
        if self.pongs == MAX_PONGS {
            self.took = Instant::now();
        }
    }

    /// Sends this next.
    pub(crate) fn answer(&mut self, message: Message) {
        self.answer = Some(message);
    }

    /// Yields to other tasks while events arrive without a pause, so that what they produce is joined into one event.
    pub(crate) async fn gather(&self) {
        for _ in 0..self.pauses {
            yield_now().await;
        }
    }

    /// Sends whatever there is to send. Returns when an answer is on its way, when there is something to gather, or when
    /// nothing can be sent any more. May be dropped at any time: nothing is lost.
    pub(crate) async fn pump(&mut self, news: &mut impl News) -> Result<(), Stuck> {
        let answers = !self.has_room();
        loop {
            self.pass_on(news).await?;
            if answers || self.pauses > 0 {
                return Ok(());
            }
        }
    }

    async fn pass_on(&mut self, news: &mut impl News) -> Result<(), Stuck> {
        let deadline = self.took + self.patience;
        if self.unflushed >= MAX_UNFLUSHED {
            within(deadline, self.sink.flush()).await?;
            (self.pongs, self.unflushed) = (0, 0);
        }
        if self.pongs >= MAX_PONGS {
            within(deadline, self.sink.flush()).await?;
            (self.pongs, self.unflushed) = (0, 0);
            // There is room to read again, unless an answer waits.
            if self.answer.is_none() {
                return Ok(());
            }
        }
        within(deadline, poll_fn(|cx| self.sink.poll_ready_unpin(cx))).await?;
        // Checking for other news costs more than passing an event on.
        let streams_first = !self.taken.is_multiple_of(OTHERS_FIRST);
        let message = match self.answer.take() {
            Some(answer) => answer,
            // Flushed once nothing more is ready, after a yield: a write for each word of a fast answer would cost more
            // than everything else.
            None if self.unflushed > 0 => tokio::select! {
                biased;
                message = news.next(streams_first) => {
                    self.pauses = (2 * self.pauses + 1).min(MAX_PAUSES);
                    message
                }
                flushed = async {
                    yield_now().await;
                    within(deadline, self.sink.flush()).await
                } => {
                    (self.pongs, self.unflushed, self.pauses) = (0, 0, 0);
                    return flushed;
                }
            },
            None => {
                self.pauses = 0;
                news.next(streams_first).await
            }
        };
        self.sink.start_send_unpin(message)?;
        (self.unflushed, self.taken) = (self.unflushed.saturating_add(1), self.taken.wrapping_add(1));
        self.took = Instant::now();
        Ok(())
    }

    /// Says the last words, if the peer takes them.
    pub(crate) async fn end(mut self, last: impl IntoIterator<Item = Message>) {
        let said = async {
            for message in last {
                self.sink.send(message).await?;
            }
            self.sink.close().await
        };
        // Nobody is left to be told when it fails.
        let _ = within(Instant::now() + self.patience, said).await;
    }
}

async fn within(deadline: Instant, sent: impl Future<Output = Result<(), Error>>) -> Result<(), Stuck> {
    timeout_at(deadline, sent).await.map_err(|_| Stuck::Slow)?.map_err(Stuck::from)
}
