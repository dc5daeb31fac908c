//! What is known of a failed call, before anything is concluded from it.

/// Where a call was when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// A response that is no stream: before the first event.
    Http,
    /// Inside a stream that began as a success.
    InStream,
    /// No response came, or its connection broke.
    Transport,
}

/// What a transport error was, where the transport can say it structurally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// The machine has no route to the host.
    NoRoute,
    /// The name did not resolve.
    Dns,
    /// The connection could not be made.
    Connect,
    /// The connection was not made in time.
    ConnectTimeout,
    /// The certificate or handshake was refused.
    Tls,
    /// Nothing arrived after the request in time.
    FirstByteTimeout,
    /// The stream fell silent.
    IdleTimeout,
    /// Bytes came, and nothing of an answer among them.
    NoProgress,
    /// The call took longer than was allowed in all.
    TotalTimeout,
    /// The connection was reset or closed before the end.
    Cut,
    /// The stream ended cleanly without its terminal event.
    Truncated,
    /// Anything else.
    Other,
}

/// All that is known of a failed call.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Where the call was.
    pub stage: Stage,
    /// The HTTP status, when a response came: with [`Stage::Transport`], that of the response whose body broke off.
    pub status: Option<u16>,
    /// The response's headers. Names are compared without case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; one event's payload, or raw SSE text; or the transport error's display chain.
    pub body: &'a str,
    /// The transport error's kind, where known.
    pub transport: Option<Transport>,
    /// The client's clock, in epoch milliseconds.
    pub now: u64,
}

impl<'a> Evidence<'a> {
    /// The first non-blank value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .find(|value| !value.is_empty())
    }
}
