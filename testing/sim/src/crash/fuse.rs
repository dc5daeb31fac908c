//! When a process ends: at a point of its work, or at a time.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio::sync::Notify;

/// The event that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Its append with this number, from 0, before it takes effect.
    Before(u32),
    /// Its append with this number, after it took effect, and before it is acknowledged.
    After(u32),
    /// The provider's piece with this number.
    Piece(u32),
    /// This point in the work of its tools.
    Tool(u32),
    /// Its append with this number after which a turn waits for a person alone.
    Asked(u32),
    /// This many milliseconds after its start.
    Time(u64),
    /// An orderly shutdown this many milliseconds after its start, with this grace period.
    Shutdown { at_ms: u64, grace_ms: u64 },
    /// Nothing: it runs until everything is done.
    Never,
}

/// The points at which a process can end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Point {
    BeforeAppend,
    AfterAppend,
    Piece,
    Tool,
    Asked,
}

/// Ends one process. Clones share it.
#[derive(Clone)]
pub(super) struct Fuse {
    trigger: Trigger,
    passed: Arc<[AtomicU32; 5]>,
    burnt: Arc<Notify>,
}

impl Fuse {
    pub(super) fn new(trigger: Trigger) -> Self {
        Self { trigger, passed: Arc::default(), burnt: Arc::default() }
    }

    /// Passes a point, or never returns if the process ends there.
    pub(super) async fn pass(&self, point: Point) {
        let passed = self.passed[point as usize].fetch_add(1, Ordering::Relaxed);
        let at = match (self.trigger, point) {
            (Trigger::Before(at), Point::BeforeAppend)
            | (Trigger::After(at), Point::AfterAppend)
            | (Trigger::Piece(at), Point::Piece)
            | (Trigger::Tool(at), Point::Tool)
            | (Trigger::Asked(at), Point::Asked) => at,
            _ => return,
        };
        if at == passed {
            self.burn();
            future::pending::<()>().await;
        }
    }

    /// Ends the process now.
    pub(super) fn burn(&self) {
        self.burnt.notify_one();
    }

    /// Waits until the process ends.
    pub(super) async fn burnt(&self) {
        match self.trigger {
            Trigger::Time(ms) => tokio::time::sleep(std::time::Duration::from_millis(ms)).await,
            _ => self.burnt.notified().await,
        }
    }
}
