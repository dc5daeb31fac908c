//! Limits on clients.

use std::time::Duration;

/// Stands for every longer time limit, so that deadlines can be computed: thirty years.
pub(crate) const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Limits on clients. `Duration::MAX` and `usize::MAX` mean no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Maximum size of a request body, in bytes: a long message with a few photos. Larger bodies receive a 413.
    pub body: usize,
    /// Maximum total size of incomplete request bodies, in bytes, not counting the first 16 KiB of each. Further
    /// requests receive a 503. Bodies thus use at most this much memory, plus 16 KiB per connection.
    pub bodies: usize,
    /// Maximum pause within a request body; after it, a 408.
    pub body_pause: Duration,
    /// Maximum time for a whole request body; after it, a 408.
    pub body_time: Duration,
    /// Number of chunks in a history response, unless the client asks for another number.
    pub chunks: usize,
    /// Maximum size of the chunks in a history response, in bytes; four times as much if the client asks for a number
    /// of chunks. At least one chunk is returned.
    pub window: usize,
    /// Maximum number of conversations in a list response. Clients may ask for fewer.
    pub list: usize,
    /// Maximum number of event streams (`POST /chat`, `GET .../events` and answers over the AI SDK's WebSocket). Further
    /// ones receive a 503, over the WebSocket an error.
    pub streams: usize,
    /// Silence after which an event stream sends a comment, so that intermediaries keep the connection open.
    pub heartbeat: Duration,
    /// How long a call that is passed through may be without an answer before its response begins all the same, and the
    /// interval of the frames that then keep its client.
    pub hold: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            bodies: 96 << 20,
            body_pause: Duration::from_secs(15),
            body_time: Duration::from_secs(120),
            chunks: 500,
            window: 1 << 20,
            list: 500,
            streams: 1024,
            heartbeat: Duration::from_secs(15),
            hold: Duration::from_secs(10),
        }
    }
}
