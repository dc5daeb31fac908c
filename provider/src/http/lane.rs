//! Connections for many calls at once.
//!
//! A pool opens one HTTP/2 connection per server, however many calls there are. What exceeds the number of streams that the
//! server allows waits inside the library, unsent and unseen, for as long as the other answers take. And all calls are lost
//! with the one connection. So calls are divided among pools.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};

use super::{IDLE_CONNECTION, IDLE_CONNECTIONS, PING, connect::Connector};

/// Number of calls that share a pool, and so an HTTP/2 connection: the number of streams that servers are asked to allow
/// at least (RFC 9113, 6.5.2), and that common ones allow.
const CALLS: usize = 100;

/// How many bytes of an answer may arrive unread over HTTP/2: enough for answers of megabytes. A connection has room for this
/// much of each of its calls, so that those who read slowly take no room from others.
const WINDOW: u32 = 256 << 10;

pub(super) type Pool = Client<Connector, Full<Bytes>>;

/// Pools with room for a number of calls each.
#[derive(Clone)]
pub(super) struct Lanes {
    connector: Connector,
    lanes: Arc<Mutex<Vec<Lane>>>,
}

struct Lane {
    pool: Pool,
    calls: Arc<AtomicUsize>,
}

/// The place of a call in its lane, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Lanes {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, lanes: Arc::default() }
    }

    /// Takes a place in the first lane with room, so that few connections are used, and used again.
    pub(super) fn enter(&self) -> (Pool, Place) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let free = lanes.iter().position(|lane| lane.calls.load(Ordering::Relaxed) < CALLS);
        let number = free.unwrap_or_else(|| {
            let pool = self.pool(lanes.len());
            lanes.push(Lane { pool, calls: Arc::default() });
            lanes.len() - 1
        });
        let lane = &lanes[number];
        lane.calls.fetch_add(1, Ordering::Relaxed);
        (lane.pool.clone(), Place(lane.calls.clone()))
    }

    fn pool(&self, number: usize) -> Pool {
        // Without any, HTTP/2 connections would not be shared either.
        let idle = if (number + 1) * CALLS <= IDLE_CONNECTIONS { CALLS } else { 1 };
        Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_max_idle_per_host(idle)
            // Otherwise every call on a dead HTTP/2 connection would be lost.
            .http2_keep_alive_interval(PING)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOW * CALLS as u32)
            .build(self.connector.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
