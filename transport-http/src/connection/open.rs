//! All open connections.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::{describe_counter, describe_gauge, gauge};

use super::{ConnectionLimits, activity::Activity};

const OPEN: &str = "everturn_connections";
pub(super) const CLOSED: &str = "everturn_connections_closed_total";

/// All open connections.
#[derive(Debug)]
pub(super) struct Open {
    most: usize,
    next: AtomicU64,
    all: Mutex<HashMap<u64, Arc<Activity>>>,
}

/// A connection's slot; held as long as its socket.
#[derive(Debug)]
pub(super) struct Slot {
    number: u64,
    open: Arc<Open>,
    pub(super) activity: Arc<Activity>,
}

impl Open {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        describe_gauge!(OPEN, "Open connections, WebSockets among them");
        describe_counter!(CLOSED, "Connections closed because of a limit, by reason");
        Self { most: limits.connections.max(1), next: AtomicU64::new(0), all: Mutex::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.most
    }

    /// Reserves a slot. The limit may be exceeded by one while the evicted connection is being closed.
    pub(super) fn reserve(self: &Arc<Self>) -> Slot {
        let (number, activity) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(Activity::new()));
        self.lock().insert(number, activity.clone());
        gauge!(OPEN).increment(1.0);
        Slot { number, open: self.clone(), activity }
    }

    /// Evicts the connection that has been idle longest. Returns false if all are being served.
    pub(super) fn evict(&self) -> bool {
        let all = self.lock();
        loop {
            let ranked = all.values().filter_map(|activity| Some((activity.rank()?, activity)));
            match ranked.min_by_key(|(rank, _)| *rank) {
                None => return false,
                Some((_, longest)) if longest.evict() => return true,
                // It is being served by now, and another one may not be.
                Some(_) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Activity>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.open.lock().remove(&self.number);
        gauge!(OPEN).decrement(1.0);
    }
}
