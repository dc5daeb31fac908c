//! A response: its head is there, its body comes in pieces.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Body as _, Incoming},
};
use hyper_util::client::legacy::ResponseFuture;
use tokio::time::timeout;

use super::ConnectionError;

/// What is read of a body that is no stream, in bytes.
pub(crate) const BODY_LIMIT: usize = 64 << 10;

/// How long the end of a body may follow the last event of an answer.
const MOMENT: Duration = Duration::from_secs(1);

/// How long the explanation of a failure is waited for, where the idle timeout is longer.
const EXPLANATION: Duration = Duration::from_secs(20);

/// A request on its way, until the response headers arrive. Dropping it ends the exchange.
pub(crate) struct Sending {
    /// The request could not be built, or its answer is awaited.
    answer: Result<ResponseFuture, Option<hyper::http::Error>>,
    idle: Duration,
}

impl Sending {
    pub(super) fn new(answer: Result<ResponseFuture, hyper::http::Error>, idle: Duration) -> Self {
        Self { answer: answer.map_err(Some), idle }
    }
}

impl Future for Sending {
    type Output = Result<Response, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let idle = self.idle;
        match &mut self.answer {
            Ok(answer) => Pin::new(answer).poll(cx).map(|response| Ok(Response { inner: response?, idle })),
            Err(error) => match error.take() {
                Some(error) => Poll::Ready(Err(ConnectionError::unsent(&error))),
                None => Poll::Pending,
            },
        }
    }
}

/// A response whose body is still to come. Dropping it ends the exchange.
#[derive(Debug)]
pub(crate) struct Response {
    inner: hyper::Response<Incoming>,
    idle: Duration,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        self.inner.headers_mut()
    }

    /// The body's next piece; `None` at its proper end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ConnectionError>> {
        loop {
            let frame = ready!(Pin::new(self.inner.body_mut()).poll_frame(cx)).transpose()?;
            // Trailers say nothing.
            let Some(frame) = frame else { return Poll::Ready(Ok(None)) };
            if let Ok(data) = frame.into_data() {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }

    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// As much of the body as comes in time and fits the limit: what explains a failure is worth
    /// having, but not worth waiting for.
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
        // Whether it ended or time ran out, what came is what there is.
        let _ = timeout(limit, read).await;
        body
    }

    /// Lets go of a body whose rest nobody needs. Its end is given a moment to arrive, so that the connection can serve
    /// the next call; a peer that goes on sending or holds the end back loses the connection.
    pub(crate) fn release(mut self) {
        tokio::spawn(timeout(MOMENT, async move { self.body().await }));
    }
}
