//! A reply as data: what is sent, in which pieces, and where it fails.

use std::{io::Read, time::Duration};

use bytes::Bytes;
use flate2::{Compression, read::GzEncoder};

use super::Gate;

/// One scripted reply.
///
/// Offsets count bytes of the body as given by the caller, without chunk framing; an offset beyond the end means the
/// end. For [`Reply::raw`], the body is everything sent, including the head.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) head: Option<Head>,
    pub(super) framing: Framing,
    pub(super) body: Bytes,
    /// Offsets at which one write ends and the next begins.
    pub(super) splits: Vec<usize>,
    pub(super) gates: Vec<(usize, Gate)>,
    pub(super) before_head: Vec<Gate>,
    pub(super) pace: Option<Duration>,
    pub(super) cut: Option<Cut>,
    pub(super) go_away: Option<(usize, GoAway)>,
    /// Where each part given to [`Reply::sse`] begins.
    parts: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length,
    Chunked,
    /// The end of the connection ends the body.
    Close,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) at: usize,
    pub(super) how: Ending,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Cleanly: the peer reads an end of file.
    Fin,
    /// Abruptly: the peer reads a connection reset.
    Reset,
    /// The peer reads an end of file without TLS's own goodbye (`close_notify`).
    Truncated,
    /// HTTP/2: only the stream ends, by a reset with this code.
    Stream(u32),
    /// HTTP/2: the stream ends properly, and is then reset with this code.
    Ended(u32),
    /// HTTP/2: nothing more is sent for the stream.
    Left,
}

/// HTTP/2: a notice that the connection takes no more streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoAway {
    pub(super) code: u32,
    /// Whether the stream of this reply will still be answered.
    pub(super) covers: bool,
}

impl Reply {
    /// Creates an empty reply with a content length.
    pub fn status(status: u16) -> Self {
        Self { head: Some(Head { status, headers: Vec::new() }), ..Self::raw("") }.content_length()
    }

    /// Creates a reply with a JSON body.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::status(status).header("content-type", "application/json").body(body.to_string())
    }

    /// Creates a 200 reply with an event stream, chunked. Each part is sent separately and verbatim, so it must contain
    /// its own `data: ` and blank line, if wanted.
    pub fn sse<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut body = Vec::new();
        let mut starts = Vec::new();
        for part in parts {
            starts.push(body.len());
            body.extend_from_slice(part.as_ref());
        }
        let reply = Self::status(200).header("content-type", "text/event-stream").chunked().body(body);
        Self { splits: starts.clone(), parts: starts, ..reply }
    }

    /// Creates a reply of verbatim bytes instead of head and body, followed by a clean end of the connection.
    pub fn raw(wire: impl Into<Bytes>) -> Self {
        Self {
            head: None,
            framing: Framing::Close,
            body: wire.into(),
            splits: Vec::new(),
            gates: Vec::new(),
            before_head: Vec::new(),
            pace: None,
            cut: None,
            go_away: None,
            parts: Vec::new(),
        }
    }

    /// Closes the connection cleanly (FIN) without a reply.
    pub fn hang_up() -> Self {
        Self::raw("")
    }

    /// Resets the connection (RST) without a reply.
    pub fn reset() -> Self {
        Self::raw("").reset_at(0)
    }

    /// Adds a header, verbatim. No effect on [`Reply::raw`].
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(head) = &mut self.head {
            head.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Compresses the body, and says so.
    #[must_use]
    pub fn gzip(self) -> Self {
        let mut packed = Vec::new();
        // Reading from memory cannot fail.
        let _ = GzEncoder::new(&self.body[..], Compression::fast()).read_to_end(&mut packed);
        self.header("content-encoding", "gzip").body(packed)
    }

    /// Replaces the status. No effect on [`Reply::raw`].
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        if let Some(head) = &mut self.head {
            head.status = status;
        }
        self
    }

    /// Replaces the body. It is sent in one write unless split.
    #[must_use]
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), splits: Vec::new(), parts: Vec::new(), ..self }
    }

    /// Sends a content length, so that the connection can be reused.
    #[must_use]
    pub fn content_length(self) -> Self {
        Self { framing: Framing::Length, ..self }
    }

    /// Sends each piece as a separate chunk, so that a client sees the pieces as they were split even if the operating
    /// system joins them.
    #[must_use]
    pub fn chunked(self) -> Self {
        Self { framing: Framing::Chunked, ..self }
    }

    /// Ends the body with the connection, so that the client cannot distinguish a truncation from the end.
    #[must_use]
    pub fn close_delimited(self) -> Self {
        Self { framing: Framing::Close, ..self }
    }

    /// Splits the body into writes of `size` bytes, in addition to existing splits. 0 has no effect.
    #[must_use]
    pub fn split_every(self, size: usize) -> Self {
        let length = self.body.len();
        let offsets = (size..length).step_by(size.max(1));
        self.split_at(offsets.filter(|_| size > 0))
    }

    /// Splits the body at these offsets, in addition to existing splits.
    #[must_use]
    pub fn split_at(mut self, offsets: impl IntoIterator<Item = usize>) -> Self {
        self.splits.extend(offsets);
        self
    }

    /// Sends the body in one write, and removes all splits.
    #[must_use]
    pub fn unsplit(self) -> Self {
        Self { splits: Vec::new(), ..self }
    }

    /// Closes the connection cleanly (FIN) after this many bytes of the body, without the end marker of a chunked body.
    #[must_use]
    pub fn cut_at(self, offset: usize) -> Self {
        Self { cut: Some(Cut { at: offset, how: Ending::Fin }), ..self }
    }

    /// Resets the connection (RST) after this many bytes of the body, without the end marker of a chunked body. The
    /// client can still read what reached its socket before.
    #[must_use]
    pub fn reset_at(self, offset: usize) -> Self {
        Self { cut: Some(Cut { at: offset, how: Ending::Reset }), ..self }
    }

    /// Closes the connection like [`Reply::cut_at`], but below TLS, which does not say goodbye (`close_notify`).
    #[must_use]
    pub fn truncate_at(self, offset: usize) -> Self {
        Self { cut: Some(Cut { at: offset, how: Ending::Truncated }), ..self }
    }

    /// HTTP/2: resets the stream with this code after this many bytes of the body, without its end. The connection stays open.
    /// With [`Reply::hang_up`], nothing else is sent.
    #[must_use]
    pub fn reset_stream_at(self, offset: usize, code: u32) -> Self {
        Self { cut: Some(Cut { at: offset, how: Ending::Stream(code) }), ..self }
    }

    /// HTTP/2: resets the stream with this code after its proper end.
    #[must_use]
    pub fn reset_stream_after(self, code: u32) -> Self {
        Self { cut: Some(Cut { at: usize::MAX, how: Ending::Ended(code) }), ..self }
    }

    /// HTTP/2: says at this offset of the body, with this code, that the connection takes no more streams. If that
    /// `covers` the stream of this reply, its answer still follows; otherwise nothing else is sent for it.
    #[must_use]
    pub fn go_away_at(self, offset: usize, code: u32, covers: bool) -> Self {
        let cut = if covers { self.cut } else { Some(Cut { at: offset, how: Ending::Left }) };
        Self { go_away: Some((offset, GoAway { code, covers })), cut, ..self }
    }

    /// Sends nothing from this offset on until the gate is open. The socket stays open. Can be used repeatedly.
    #[must_use]
    pub fn stall_at(mut self, offset: usize, gate: &Gate) -> Self {
        self.gates.push((offset, gate.clone()));
        self
    }

    /// Like [`Reply::stall_at`], at the start of the `n`-th part given to [`Reply::sse`], from 0; without such a part,
    /// at the end of the body.
    #[must_use]
    pub fn stall_before(self, n: usize, gate: &Gate) -> Self {
        let offset = self.parts.get(n).copied().unwrap_or(usize::MAX);
        self.stall_at(offset, gate)
    }

    /// Sends nothing, not even the head, until the gate is open.
    #[must_use]
    pub fn hold(mut self, gate: &Gate) -> Self {
        self.before_head.push(gate.clone());
        self
    }

    /// Waits this long in real time before every write except the first. For demos; tests use gates.
    #[must_use]
    pub fn paced(self, pause: Duration) -> Self {
        Self { pace: Some(pause), ..self }
    }

    /// Returns the body, for its length and for what a client should have received.
    pub fn body_bytes(&self) -> &Bytes {
        &self.body
    }
}
