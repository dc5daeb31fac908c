//! Limits derived from the available file descriptors.

use everturn_transport_http::ConnectionLimits;

/// Number of descriptors assumed if the system has no such limit, or does not report it.
const UNLIMITED: usize = 1 << 20;

/// The server's limits.
///
/// Three quarters of the descriptors are for connections; the rest is for provider calls, the data file and tools. At
/// most three eighths of the connections are WebSockets, and as many are event streams, so that there is always room
/// for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) connections: ConnectionLimits,
    pub(crate) calls: everturn_transport_http::CallLimits,
    pub(crate) sockets: everturn_transport_ws::SocketLimits,
}

impl Capacity {
    /// Returns the limits of this process, after raising its descriptor limit as far as allowed.
    pub(crate) fn of_process() -> Self {
        Self::of(descriptors())
    }

    fn of(descriptors: usize) -> Self {
        let (connections, calls, sockets) =
            (ConnectionLimits::default(), everturn_transport_http::CallLimits::default(), Default::default());
        let everturn_transport_ws::SocketLimits { sockets: most_sockets, .. } = sockets;
        let most = connections.connections.min(descriptors / 4 * 3).max(8);
        let lasting = most / 8 * 3;
        Self {
            connections: ConnectionLimits { connections: most, ..connections },
            calls: everturn_transport_http::CallLimits { streams: calls.streams.min(lasting), ..calls },
            sockets: everturn_transport_ws::SocketLimits { sockets: most_sockets.min(lasting), ..sockets },
        }
    }
}

/// Raises the soft limit of file descriptors to the hard one. Returns the resulting limit.
#[cfg(unix)]
fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    // Some systems report a higher limit than they allow; the soft limit then stays.
    let current = if raised.is_ok() { limit.maximum } else { limit.current };
    current.map_or(UNLIMITED, |current| usize::try_from(current).unwrap_or(UNLIMITED))
}

#[cfg(not(unix))]
fn descriptors() -> usize {
    UNLIMITED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_leave_room_for_requests_and_providers() {
        for descriptors in [16, 64, 256, 1024, 4096, UNLIMITED] {
            let Capacity { connections, calls, sockets } = Capacity::of(descriptors);
            let connections = connections.connections;
            assert!(connections <= descriptors / 4 * 3, "{descriptors}");
            assert!(calls.streams + sockets.sockets <= connections / 4 * 3, "{descriptors}");
            assert!(calls.streams > 0 && sockets.sockets > 0, "{descriptors}");
        }
        assert_eq!(Capacity::of(UNLIMITED).calls, everturn_transport_http::CallLimits::default());
        assert_eq!(Capacity::of(UNLIMITED).sockets, everturn_transport_ws::SocketLimits::default());
    }

    #[cfg(unix)]
    #[test]
    fn the_soft_descriptor_limit_is_raised_to_the_hard_one() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let hard = getrlimit(Resource::Nofile).maximum;
        let low = hard.map_or(256, |hard| hard.min(256));
        setrlimit(Resource::Nofile, Rlimit { current: Some(low), maximum: hard }).unwrap();
        let found = descriptors();
        let now = getrlimit(Resource::Nofile).current;
        assert_eq!((now, found), (hard, hard.map_or(UNLIMITED, |hard| hard as usize)));
    }
}
