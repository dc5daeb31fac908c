//! A subscription as the body of an answer.

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

/// Events that are there already go out together, up to so many bytes; none is held back to wait for more.
const GATHERED: usize = 16 << 10;

/// How events become bytes.
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

/// A subscription that is being sent. The client sets the pace: an event is taken when there is room for it.
struct Relay {
    /// Waiting for the next one may be given up without losing what was read for it already.
    events: BoxStream<'static, Result<Frame, Error>>,
    format: Format,
    over: bool,
    _place: OwnedSemaphorePermit,
}

/// The events of a subscription as a body.
pub(crate) fn body(subscription: Subscription, format: Format, place: OwnedSemaphorePermit) -> Body {
    let events = stream::unfold(subscription, async |mut subscription| {
        let event = subscription.next().await;
        Some((event, subscription))
    });
    let relay = Relay { events: events.boxed(), format, over: false, _place: place };
    Body::from_stream(stream::unfold(relay, async |mut relay| {
        if relay.over {
            return None;
        }
        let gathered = relay.gather().await;
        if let Err(Error::ShuttingDown) = gathered {
            // In good order: nothing was lost, and what comes next comes after the restart.
            return None;
        }
        if let Err(error) = &gathered {
            tracing::warn!(%error, "an event stream was cut");
            relay.over = true;
        }
        Some((gathered, relay))
    }))
}

impl Relay {
    /// The next events; an error cuts the body off, so that the client sees that it is not all.
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
        // A subscription has no end but an error.
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
