//! Sends messages to a peer as fast as it accepts them.

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
    /// The peer accepts data too slowly or not at all.
    Slow,
    /// The connection is gone.
    Gone,
}

impl From<Error> for Stuck {
    fn from(_: Error) -> Self {
        Self::Gone
    }
}

/// Maximum number of unsent pongs. At the limit, nothing more is read from the peer.
const MAX_PONGS: usize = 32;
/// Maximum number of times the task yields before it takes the next event while events arrive without a pause. What
/// other tasks produce meanwhile is joined into one event.
const MAX_PAUSES: u8 = 7;
/// Maximum number of messages the socket buffers before they are flushed.
const MAX_UNFLUSHED: u8 = 12;
/// For every 16th message, other messages are checked before events.
const OTHERS_FIRST: u8 = 16;

/// Sends answers first, then the next event.
///
/// An event is taken only when the socket has room for it. The pending data is bounded: one answer, one event, and the
/// socket's write buffer.
pub(crate) struct Outbox {
    sink: SplitSink<WebSocket, Message>,
    answer: Option<Message>,
    /// Pongs that the protocol put into the socket's buffer since the last flush.
    pongs: usize,
    /// Messages that the socket accepted but has not flushed.
    unflushed: u8,
    /// How often to yield before the next event; zero unless events arrive without a pause.
    pauses: u8,
    /// Number of messages that the socket accepted, wrapping.
    taken: u8,
    /// When the socket accepted the last message.
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

    /// Whether the last answer is being sent, so that there is room for another.
    pub(crate) fn has_room(&self) -> bool {
        self.answer.is_none() && self.pongs < MAX_PONGS
    }

    /// Records that a ping was read, so that a pong must be sent.
    pub(crate) fn owes_pong(&mut self) {
        self.pongs += 1;
        if self.pongs == MAX_PONGS {
            self.took = Instant::now();
        }
    }

    /// Sends this answer next.
    pub(crate) fn answer(&mut self, message: Message) {
        self.answer = Some(message);
    }

    /// Yields to other tasks while events arrive without a pause, so that what they produce is joined into one event.
    pub(crate) async fn gather(&self) {
        for _ in 0..self.pauses {
            yield_now().await;
        }
    }

    /// Sends pending messages. Returns when an answer is being sent, when there are events to join, or with an error
    /// when nothing can be sent any more. Cancel-safe.
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
            // There is room to read again, unless an answer is pending.
            if self.answer.is_none() {
                return Ok(());
            }
        }
        within(deadline, poll_fn(|cx| self.sink.poll_ready_unpin(cx))).await?;
        // Events first, because checking other sources costs more than passing an event on.
        let streams_first = !self.taken.is_multiple_of(OTHERS_FIRST);
        let message = match self.answer.take() {
            Some(answer) => answer,
            // Flush once nothing more is ready, after a yield. A write for each word of a fast answer would cost more
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

    /// Sends final messages, if the peer accepts them.
    pub(crate) async fn end(mut self, last: impl IntoIterator<Item = Message>) {
        let said = async {
            for message in last {
                self.sink.send(message).await?;
            }
            self.sink.close().await
        };
        // If it fails, nobody is left to be told.
        let _ = within(Instant::now() + self.patience, said).await;
    }
}

async fn within(deadline: Instant, sent: impl Future<Output = Result<(), Error>>) -> Result<(), Stuck> {
    timeout_at(deadline, sent).await.map_err(|_| Stuck::Slow)?.map_err(Stuck::from)
}
