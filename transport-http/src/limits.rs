//! What a client may cost.

use std::time::Duration;

/// What a client may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Longest request body, in bytes: a long message with some photos inside. A longer one is a 413.
    pub body: usize,
    /// Request bodies together that have not come whole, in bytes, without the first 16 KiB of each; what comes beyond
    /// that is refused with a 503. Together they hold at most this and 16 KiB for each connection.
    pub bodies: usize,
    /// How long a request body may pause; then it is refused with a 408.
    pub body_pause: Duration,
    /// How long all of a request body may take; then it is refused with a 408.
    pub body_time: Duration,
    /// Chunks in one answer with history, unless the client asks for another number.
    pub chunks: usize,
    /// Bytes of chunks in one answer with history; four times as many where the client asks for a number of chunks. One
    /// chunk is given however large it is.
    pub window: usize,
    /// Conversations in one answer with their list; a client may ask for fewer.
    pub list: usize,
    /// Event streams at once (`POST /chat` and `GET .../events`); one more is refused with a 503.
    pub streams: usize,
    /// How long a server-sent event stream may be silent before it carries a comment, so that nothing on the way takes
    /// it for dead.
    pub heartbeat: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            body: 16 << 20,
            bodies: 64 << 20,
            body_pause: Duration::from_secs(15),
            body_time: Duration::from_secs(120),
            chunks: 500,
            window: 1 << 20,
            list: 500,
            streams: 1024,
            heartbeat: Duration::from_secs(15),
        }
    }
}
