//! Limits on peers.

use std::time::Duration;

/// Stands for every longer time limit, so that deadlines can be computed: thirty years.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Limits on peers. `Duration::MAX` and `usize::MAX` mean no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketLimits {
    /// Maximum number of sockets. Further ones receive a 503.
    pub sockets: usize,
    /// Maximum number of conversations that one socket may watch.
    pub subscriptions: usize,
    /// Maximum size of a command, in bytes. A larger one closes the socket with code 1009. The default of 4 MiB fits
    /// the longest message with a few images; for more, use `POST /chat`.
    pub command: usize,
    /// Maximum number of concurrent commands per socket. At the limit, no command is read until one completes. After a
    /// second, further commands are refused.
    pub commands: usize,
    /// Maximum time for the peer to accept a message before the socket is closed.
    pub send_timeout: Duration,
    /// Silence after which the peer is pinged, and after which, once pinged, it counts as dead.
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

impl SocketLimits {
    /// Returns the limits with time limits that can be added to any moment.
    pub(crate) fn reachable(self) -> Self {
        let (send_timeout, ping_every) = (self.send_timeout.min(FAR), self.ping_every.min(FAR));
        Self { send_timeout, ping_every, ..self }
    }
}
