//! Sends a subscription as a response body.

use axum::body::Body;
use bytes::Bytes;
use everturn_orchestrator::{Error, Frame, Subscription};
use futures_util::{
    FutureExt as _, StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Duration, timeout},
};

/// Maximum number of bytes sent together. Only events that are already available are combined.
const GATHERED: usize = 16 << 10;

/// The format of the events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    /// One event per line, until the turn is sealed.
    Ndjson,
    /// Server-sent events, until the server shuts down.
    Sse {
        /// Silence after which a comment is sent.
        heartbeat: Duration,
    },
}

/// A subscription being sent. The client sets the pace: an event is taken only when there is room for it.
struct Relay {
    /// Waiting for the next event is cancel-safe.
    events: BoxStream<'static, Result<Frame, Error>>,
    format: Format,
    over: bool,
    _place: OwnedSemaphorePermit,
}

/// Returns the events of a subscription as a response body.
pub(crate) fn body(subscription: Subscription, format: Format, place: OwnedSemaphorePermit) -> Body {
    // An event without data: the browser resumes from here if it reconnects before the first one.
    let place_so_far = match format {
        Format::Sse { .. } => Some(Ok(Bytes::from(format!("id: {}\n\n", subscription.cursor())))),
        Format::Ndjson => None,
    };
    let events = stream::unfold(subscription, async |mut subscription| {
        let event = subscription.next().await;
        Some((event, subscription))
    });
    let relay = Relay { events: events.boxed(), format, over: false, _place: place };
    let pieces = stream::unfold(relay, async |mut relay| {
        if relay.over {
            return None;
        }
        let gathered = relay.gather().await;
        if let Err(Error::ShuttingDown) = gathered {
            // A clean end, because nothing was lost, and the stream resumes after the restart.
            return None;
        }
        if let Err(error) = &gathered {
            tracing::warn!(%error, "an event stream was cut");
            relay.over = true;
        }
        Some((gathered, relay))
    });
    Body::from_stream(stream::iter(place_so_far).chain(pieces))
}

impl Relay {
    /// Returns the next events. An error truncates the body, so that the client knows that it is incomplete.
    async fn gather(&mut self) -> Result<Bytes, Error> {
        let first = match self.format {
            Format::Ndjson => self.next().await?,
            Format::Sse { heartbeat } => match timeout(heartbeat, self.next()).await {
                Ok(first) => first?,
                Err(_) => return Ok(Bytes::from_static(b":\n\n")),
            },
        };
        let mut bytes = Vec::new();
        self.put(&first, &mut bytes);
        while !self.over
            && bytes.len() < GATHERED
            && let Some(next) = self.next().now_or_never()
        {
            match next {
                Ok(next) => self.put(&next, &mut bytes),
                Err(Error::ShuttingDown) => self.over = true,
                Err(error) => return Err(error),
            }
        }
        Ok(bytes.into())
    }

    async fn next(&mut self) -> Result<Frame, Error> {
        // A subscription ends only with an error.
        self.events.next().await.unwrap_or(Err(Error::ShuttingDown))
    }

    fn put(&mut self, frame: &Frame, bytes: &mut Vec<u8>) {
        match self.format {
            Format::Ndjson => {
                bytes.extend_from_slice(&frame.event());
                bytes.push(b'\n');
                self.over = frame.ends_turn();
            }
            Format::Sse { .. } => {
                bytes.extend_from_slice(format!("id: {}\ndata: ", frame.end()).as_bytes());
                bytes.extend_from_slice(&frame.event());
                bytes.extend_from_slice(b"\n\n");
            }
        }
    }
}
