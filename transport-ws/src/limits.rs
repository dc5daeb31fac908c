//! What a peer may cost.

use std::time::Duration;

/// What a peer may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketLimits {
    /// Sockets at once; one more is refused with a 503.
    pub sockets: usize,
    /// Conversations that one socket may watch at once.
    pub subscriptions: usize,
    /// Longest command, in bytes. A longer one ends the socket with the code 1009. The usual 4 MiB hold the longest
    /// message with some pictures; larger ones go by `POST /chat`.
    pub command: usize,
    /// Commands of one socket that may be under way at once. No further one is read until one is done; after a second, a
    /// further one is refused.
    pub commands: usize,
    /// How long the peer may take for what it was sent; then the socket ends.
    pub send_timeout: Duration,
    /// How long the peer may be silent before it is pinged, and then before it counts as dead.
    pub ping_every: Duration,
}

impl Default for SocketLimits {
    fn default() -> Self {
        Self {
            sockets: 1024,
            subscriptions: 256,
            command: 4 << 20,
            commands: 64,
            send_timeout: Duration::from_secs(30),
            ping_every: Duration::from_secs(25),
        }
    }
}
