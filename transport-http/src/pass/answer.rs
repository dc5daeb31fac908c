//! Sends an answer as it comes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::Response,
};
use bytes::Bytes;
use everturn_orchestrator::{Dialect, Listener, NoAnswer, Said};
use futures_util::{Stream, StreamExt as _};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{error, frames::Frames, held::Held};

/// Marks a response that nothing may be added to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedThrough;

/// A client that waits for an answer.
pub(super) struct Client {
    pub(super) dialect: Dialect,
    /// The model, as it named it.
    pub(super) model: String,
    /// Whether it asked for a stream, so that it can be kept while it waits.
    pub(super) streams: bool,
}

/// Returns the response to a call. If nothing is known of the answer for a while, a client that asked for a stream gets
/// one that keeps it.
pub(super) async fn answer(
    client: Client,
    mut listener: Listener,
    place: OwnedSemaphorePermit,
    every: Duration,
) -> Response {
    let Client { dialect, model, streams } = client;
    let said = match timeout(every, listener.next()).await {
        Ok(said) => said,
        Err(_) if streams => {
            let frames = Frames::new(dialect, listener.call(), &model);
            return held(Held::new(listener, frames, every, place));
        }
        Err(_) => listener.next().await,
    };
    match said {
        Some(Said::Head(status, headers)) => passed(status, headers, Pieces { listener, _place: place }),
        Some(Said::Nothing(why)) => error::no_answer(dialect, &why),
        // A tape begins with one of these.
        Some(Said::Piece(_) | Said::End | Said::Cut) | None => error::no_answer(dialect, &NoAnswer::Left),
    }
}

fn held(held: Held) -> Response {
    let mut response = Response::new(Body::from_stream(Flushed::new(held)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn passed(status: StatusCode, headers: HeaderMap, pieces: Pieces) -> Response {
    let mut response = Response::new(Body::from_stream(Flushed::new(pieces)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.extensions_mut().insert(PassedThrough);
    response
}

/// The rest of an answer.
struct Pieces {
    listener: Listener,
    _place: OwnedSemaphorePermit,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.listener.poll_next_unpin(cx).map(|said| match said? {
            Said::Piece(piece) => Some(Ok(piece)),
            Said::End => None,
            Said::Head(..) | Said::Cut | Said::Nothing(_) => {
                Some(Err(io::ErrorKind::ConnectionAborted.into()))
            }
        })
    }
}

/// A body whose client gets everything that was said before an error: hyper writes what it holds whenever a body is pending,
/// and drops it when a body fails.
struct Flushed<S> {
    inner: S,
    failed: Option<io::Error>,
}

impl<S> Flushed<S> {
    fn new(inner: S) -> Self {
        Self { inner, failed: None }
    }
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Stream for Flushed<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(error) = this.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(this.inner.poll_next_unpin(cx)) {
            Some(Err(error)) => {
                this.failed = Some(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            said => Poll::Ready(said),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};

    use super::*;

    #[test]
    fn what_was_said_is_written_before_an_error() {
        let said = [Ok(Bytes::from_static(b"a")), Err(io::ErrorKind::ConnectionAborted.into())];
        let mut body = Flushed::new(stream::iter(said));
        assert!(matches!(body.next().now_or_never(), Some(Some(Ok(_)))));
        assert!(body.next().now_or_never().is_none(), "pending once");
        assert!(matches!(body.next().now_or_never(), Some(Some(Err(_)))));
        assert!(matches!(body.next().now_or_never(), Some(None)));
    }
}
