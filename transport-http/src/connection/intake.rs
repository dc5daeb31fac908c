//! Accepts connections.

use std::{io, sync::Arc, time::Duration};

use metrics::counter;
use tokio::{
    net::{TcpListener, TcpStream},
    task::yield_now,
    time::{Instant, sleep},
};

use super::open::{CLOSED, Open, Slot};

/// Minimum interval between two log messages about the same problem.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Wait after the system refused a connection, because it would refuse again at once.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// The listener and its limits.
pub(super) struct Intake {
    listener: TcpListener,
    open: Arc<Open>,
    logged: Option<Instant>,
}

impl Intake {
    pub(super) fn new(listener: TcpListener, open: Arc<Open>) -> Self {
        Self { listener, open, logged: None }
    }

    /// Returns the next connection with its slot. Cancel-safe.
    pub(super) async fn next(&mut self) -> (TcpStream, Slot) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    if let Some(slot) = self.reserve().await {
                        // The socket may be closed already, which shows when it is used.
                        let _ = stream.set_nodelay(true);
                        return (stream, slot);
                    }
                }
                Err(error) => self.refused(&error).await,
            }
        }
    }

    /// Reserves a slot; if none is free, evicts the connection that has been idle longest.
    async fn reserve(&mut self) -> Option<Slot> {
        if self.open.is_full() {
            let makes_room = self.open.evict();
            if self.may_log() {
                let connections = self.open.len();
                match makes_room {
                    true => tracing::warn!(
                        connections,
                        "the limit of connections is reached: idle ones are closed"
                    ),
                    false => tracing::warn!(
                        connections,
                        "the limit of connections is reached and none is idle: new ones are closed"
                    ),
                }
            }
            if !makes_room {
                counter!(CLOSED, "reason" => "full").increment(1);
                return None;
            }
            yield_now().await;
        }
        Some(self.open.reserve())
    }

    async fn refused(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        // Caused by the client, and over.
        if let ConnectionAborted | ConnectionRefused | ConnectionReset = error.kind() {
            return;
        }
        let makes_room = self.open.evict();
        if self.may_log() {
            let connections = self.open.len();
            match is_out_of_descriptors(error) {
                true => tracing::error!(
                    connections,
                    idle_closed = makes_room,
                    "out of file descriptors: no connection can be accepted until one is closed; raise the limit \
                     (ulimit -n, or LimitNOFILE of a systemd unit)"
                ),
                false => tracing::error!(%error, connections, "cannot accept a connection"),
            }
        }
        sleep(RETRY_AFTER).await;
    }

    fn may_log(&mut self) -> bool {
        let now = Instant::now();
        let may = self.logged.is_none_or(|logged| now.duration_since(logged) >= LOG_EVERY);
        if may {
            self.logged = Some(now);
        }
        may
    }
}

/// Whether the process or the system is out of descriptors: `EMFILE` and `ENFILE` of Unix, `WSAEMFILE` of Windows.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24 | 10024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnectionLimits;

    #[tokio::test]
    async fn a_delta_never_waits_for_the_acknowledgement_of_another() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut intake = Intake::new(listener, Arc::new(Open::new(ConnectionLimits::default())));
        let (_client, (accepted, _slot)) = tokio::join!(TcpStream::connect(address), intake.next());
        assert!(accepted.nodelay().unwrap());
    }

    #[test]
    fn running_out_of_descriptors_is_told_from_other_trouble() {
        for (code, is) in [(24, true), (23, true), (104, false), (13, false)] {
            assert_eq!(is_out_of_descriptors(&io::Error::from_raw_os_error(code)), is, "{code}");
        }
    }
}
