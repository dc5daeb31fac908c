//! Evidence: what is known about a failed call.

/// The stage of a call at which it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// A complete response, before the first event of a stream.
    Http,
    /// Inside a stream that began successfully.
    InStream,
    /// No response arrived, or the connection broke.
    Transport,
}

/// The kind of a transport error, if the transport reports it structurally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// The machine has no route to the host.
    NoRoute,
    /// The name did not resolve.
    Dns,
    /// The connection failed.
    Connect,
    /// The connection attempt timed out.
    ConnectTimeout,
    /// The certificate or handshake was rejected.
    Tls,
    /// No response arrived in time.
    FirstByteTimeout,
    /// The stream stalled.
    IdleTimeout,
    /// Bytes arrived, but no part of an answer.
    NoProgress,
    /// The call exceeded its total timeout.
    TotalTimeout,
    /// The connection was reset or closed early.
    Cut,
    /// The stream ended cleanly without a terminal event.
    Truncated,
    /// Anything else.
    Other,
}

/// Everything known about a failed call.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The stage at which the call failed.
    pub stage: Stage,
    /// The HTTP status, if a response arrived. With [`Stage::Transport`]: of the response whose body broke off.
    pub status: Option<u16>,
    /// The response headers. Names are compared without case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, an event's payload, raw SSE text, or the display chain of the transport error.
    pub body: &'a str,
    /// The kind of the transport error, if known.
    pub transport: Option<Transport>,
    /// The client's clock, in epoch milliseconds.
    pub now: u64,
}

impl<'a> Evidence<'a> {
    /// Returns the first non-blank value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .find(|value| !value.is_empty())
    }
}
