//! Counts at the socket, and the closure that chooses replies.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Reply, Request};

/// Memory for kept requests, in bytes. The newest is always kept.
const MEMORY: usize = 64 * 1024 * 1024;

/// The counts of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: usize,
    /// Connections that neither side has closed.
    pub open: usize,
    /// Complete requests received.
    pub requests: usize,
    /// Replies whose client disconnected before their end.
    pub abandoned: usize,
    /// Requests that were not HTTP/1.1, or exceeded 64 KiB of head or 64 MiB of body. Answered with 400, 413 or 431.
    pub rejected: usize,
    /// Connections whose TLS handshake was not completed by both sides.
    pub failed_handshakes: usize,
}

type Choose = Box<dyn FnMut(&Request) -> Reply + Send>;

/// Shared by the handle and all connections of a server.
pub(super) struct Ledger {
    counts: watch::Sender<Counts>,
    kept: Mutex<Kept>,
    choose: Mutex<Choose>,
}

#[derive(Default)]
struct Kept {
    requests: VecDeque<Request>,
    weight: usize,
}

impl Ledger {
    pub(super) fn new(choose: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self {
            counts: watch::Sender::new(Counts::default()),
            kept: Mutex::default(),
            choose: Mutex::new(Box::new(choose)),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        lock(&self.kept).requests.iter().cloned().collect()
    }

    pub(super) async fn until(&self, reached: impl FnMut(&Counts) -> bool) -> Counts {
        let mut receiver = self.counts.subscribe();
        let seen = receiver.wait_for(reached).await.map(|counts| *counts);
        // The sender is borrowed, so it cannot be gone.
        seen.unwrap_or_else(|_| self.counts())
    }

    /// Counts a connection as open until the returned value is dropped.
    pub(super) fn connect(self: &Arc<Self>) -> Connected {
        let mut number = 0;
        self.counts.send_modify(|counts| {
            number = counts.connections;
            counts.connections += 1;
            counts.open += 1;
        });
        Connected { ledger: Arc::clone(self), number }
    }

    /// Counts a request, assigns its index, and chooses its reply. One at a time, so that both orders are equal.
    pub(super) fn answer(&self, mut request: Request) -> Reply {
        let mut choose = lock(&self.choose);
        request.index = self.counts().requests;
        lock(&self.kept).push(request.clone());
        self.counts.send_modify(|counts| counts.requests += 1);
        choose(&request)
    }

    pub(super) fn abandon(&self) {
        self.counts.send_modify(|counts| counts.abandoned += 1);
    }

    pub(super) fn fail_handshake(&self) {
        self.counts.send_modify(|counts| counts.failed_handshakes += 1);
    }

    pub(super) fn reject(&self) {
        self.counts.send_modify(|counts| counts.rejected += 1);
    }
}

impl Kept {
    fn push(&mut self, request: Request) {
        self.weight += request.weight();
        self.requests.push_back(request);
        while self.weight > MEMORY && self.requests.len() > 1 {
            self.weight -= self.requests.pop_front().map_or(0, |oldest| oldest.weight());
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// An open connection.
pub(super) struct Connected {
    ledger: Arc<Ledger>,
    /// Its number, from 0.
    pub(super) number: usize,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.ledger.counts.send_modify(|counts| counts.open -= 1);
    }
}

/// A closure that panicked for one request must not hide the counts from later assertions.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(index: usize, size: usize) -> Request {
        Request {
            index,
            connection: 0,
            method: "POST".into(),
            path: "/".into(),
            headers: Vec::new(),
            body: vec![0; size].into(),
        }
    }

    #[test]
    fn the_oldest_requests_are_forgotten_and_the_newest_is_kept() {
        let mut kept = Kept::default();
        for index in 0..3 {
            kept.push(request(index, MEMORY / 2 - 1024));
        }
        assert_eq!(kept.requests.iter().map(|kept| kept.index).collect::<Vec<_>>(), [1, 2]);
        kept.push(request(3, MEMORY + 1));
        assert_eq!(kept.requests.iter().map(|kept| kept.index).collect::<Vec<_>>(), [3]);
    }
}
