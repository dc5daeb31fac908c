//! A socket and bodies that record their connection's activity.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};

use super::{
    activity::{Activity, Phase},
    open::Slot,
    tls::Stream,
};

/// Maximum number of bytes to read at once, less than 16 KiB. While a request is answered, hyper keeps a buffer to read more, which
/// it doubles whenever a read has filled it, up to 400 KiB.
const AT_ONCE: u64 = (16 << 10) - 1;

/// A socket. Its slot is free on drop, also after an upgrade.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Take<Stream>,
    slot: Slot,
}

impl Socket {
    pub(super) fn new(stream: Stream, slot: Slot) -> Self {
        Self { stream: stream.take(AT_ONCE), slot }
    }

    fn stream(&mut self) -> Pin<&mut Stream> {
        Pin::new(self.stream.get_mut())
    }

    fn sent<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.slot.activity.sent(polled.is_ready());
        polled
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        self.stream.set_limit(AT_ONCE);
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.slot.activity.heard();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = self.stream().poll_write(cx, buf);
        self.sent(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = self.stream().poll_write_vectored(cx, bufs);
        self.sent(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}

/// The body of a request.
pub(super) struct RequestBody {
    body: Incoming,
    activity: Arc<Activity>,
}

impl RequestBody {
    /// Returns `None` if the connection is being evicted.
    pub(super) fn body(body: Incoming, activity: &Arc<Activity>) -> Option<Body> {
        if body.is_end_stream() {
            return activity.enter(Phase::Answering).then(Body::empty);
        }
        activity.enter(Phase::Body).then(|| Body::new(Self { body, activity: activity.clone() }))
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let is_whole = frame.is_none() || self.body.is_end_stream();
        if is_whole && !self.activity.has_body() {
            // Nothing may begin that would be cut off. The connection is dropped, and this with it.
            return Poll::Pending;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.activity.has_body();
    }
}

/// The body of a response.
pub(super) struct ResponseBody {
    body: Body,
    activity: Arc<Activity>,
}

impl ResponseBody {
    pub(super) fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.activity.enter(Phase::Idle);
    }
}
