//! A response whose headers have arrived and whose body is still streaming.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use everturn_diagnosis::Transport;
use hyper::{
    HeaderMap, Version,
    body::{Body as _, Incoming},
};
use hyper_util::client::legacy::ResponseFuture;
use tokio::time::timeout;

use super::{ConnectionError, lane::Place};

/// Maximum number of bytes read from a body that is not a stream.
pub(crate) const BODY_LIMIT: usize = 64 << 10;

/// How long to wait for the end of the body after the last event of an answer.
const MOMENT: Duration = Duration::from_secs(1);

/// Maximum wait for the body of an error response, if the idle timeout is longer.
const EXPLANATION: Duration = Duration::from_secs(20);

/// A request whose response headers are pending. Dropping it ends the exchange.
pub(crate) struct Sending {
    /// The pending response, or the error that kept the request from being built.
    answer: Result<ResponseFuture, Option<hyper::http::Error>>,
    idle: Duration,
    place: Option<Place>,
}

impl Sending {
    pub(super) fn new(
        answer: Result<ResponseFuture, hyper::http::Error>,
        idle: Duration,
        place: Place,
    ) -> Self {
        Self { answer: answer.map_err(Some), idle, place: Some(place) }
    }
}

impl Future for Sending {
    type Output = Result<Response, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { answer, idle, place } = &mut *self;
        match answer {
            Ok(answer) => {
                let response = ready!(Pin::new(answer).poll(cx));
                let place = place.take();
                Poll::Ready(Ok(Response { inner: response?, idle: *idle, _place: place }))
            }
            Err(error) => match error.take() {
                Some(error) => Poll::Ready(Err(ConnectionError::unsent(&error))),
                None => Poll::Pending,
            },
        }
    }
}

/// A response with a pending body. Dropping it ends the exchange.
#[derive(Debug)]
pub(crate) struct Response {
    inner: hyper::Response<Incoming>,
    idle: Duration,
    _place: Option<Place>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        self.inner.headers_mut()
    }

    /// Polls for the next piece of the body; `None` at its proper end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ConnectionError>> {
        loop {
            let frame = ready!(Pin::new(self.inner.body_mut()).poll_frame(cx)).transpose()?;
            // Trailers are ignored.
            let Some(frame) = frame else { return Poll::Ready(self.end()) };
            if let Ok(data) = frame.into_data() {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }

    /// Handles the end of the body. An HTTP/2 stream that was closed without an error ends here, too, even if its end was
    /// never sent: a server that shuts down leaves its streams like that.
    fn end(&self) -> Result<Option<Bytes>, ConnectionError> {
        if self.inner.version() == Version::HTTP_2 && !self.inner.body().is_end_stream() {
            let text = "the stream was closed before the end of the body".to_owned();
            return Err(ConnectionError { kind: Transport::Cut, text });
        }
        Ok(None)
    }

    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Reads as much of the body as arrives in time and fits the limit. An explanation of a failure is useful, but not
    /// worth a long wait.
    pub(crate) async fn body(&mut self) -> Vec<u8> {
        let (mut body, limit) = (Vec::new(), self.idle.min(EXPLANATION));
        let read = async {
            while let Ok(Some(chunk)) = self.chunk().await {
                let room = BODY_LIMIT - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if body.len() == BODY_LIMIT {
                    break;
                }
            }
        };
        // Use what has arrived, whether the body ended or time ran out.
        let _ = timeout(limit, read).await;
        body
    }

    /// Reads the pieces that arrive in time, until they exceed `most` bytes. What is missing is lost to the caller as well.
    pub(crate) async fn rest(&mut self, most: usize) -> Vec<Bytes> {
        self.rest_within(most, EXPLANATION).await
    }

    /// The same after an error in the stream, which explains itself: only what comes in a moment.
    pub(crate) async fn rest_of_stream(&mut self, most: usize) -> Vec<Bytes> {
        self.rest_within(most, MOMENT).await
    }

    async fn rest_within(&mut self, most: usize, limit: Duration) -> Vec<Bytes> {
        let (mut pieces, limit) = (Vec::new(), self.idle.min(limit));
        let mut held = 0;
        let read = async {
            while held < most
                && let Ok(Some(piece)) = self.chunk().await
            {
                held += piece.len();
                pieces.push(piece);
            }
        };
        let _ = timeout(limit, read).await;
        pieces
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// When the connection breaks, the body pauses for too long, or it is longer than `limit` bytes.
    pub(crate) async fn whole(&mut self, limit: usize) -> Result<Vec<u8>, ConnectionError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > limit {
                return Err(ConnectionError {
                    kind: Transport::Truncated,
                    text: format!("the answer is longer than {} MiB", limit >> 20),
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Releases a body that is no longer needed. Waits briefly for its end so that the connection can be reused. If the
    /// peer keeps sending or holds the end back, the connection is closed.
    pub(crate) fn release(mut self) {
        tokio::spawn(timeout(MOMENT, async move { self.body().await }));
    }
}
