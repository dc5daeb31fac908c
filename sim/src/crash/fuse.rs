//! When a process ends: at a point of its work, or at a time.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio::sync::Notify;

/// What ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// This append of it, from 0; before it took effect.
    Before(u32),
    /// This append of it; after it took effect, before that is answered.
    After(u32),
    /// This piece that a provider says.
    Piece(u32),
    /// This place in the work of its tools.
    Tool(u32),
    /// So many milliseconds after its beginning.
    Time(u64),
    /// It is told to end so many milliseconds after its beginning, with a grace of so many.
    Shutdown { at_ms: u64, grace_ms: u64 },
    /// It lives until all is done.
    Never,
}

/// Where a process can end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Point {
    BeforeAppend,
    AfterAppend,
    Piece,
    Tool,
}

/// Ends one process. Clones are the same fuse.
#[derive(Clone)]
pub(super) struct Fuse {
    trigger: Trigger,
    passed: Arc<[AtomicU32; 4]>,
    burnt: Arc<Notify>,
}

impl Fuse {
    pub(super) fn new(trigger: Trigger) -> Self {
        Self { trigger, passed: Arc::default(), burnt: Arc::default() }
    }

    /// Goes past a point, or never comes back from it.
    pub(super) async fn pass(&self, point: Point) {
        let passed = self.passed[point as usize].fetch_add(1, Ordering::Relaxed);
        let at = match (self.trigger, point) {
            (Trigger::Before(at), Point::BeforeAppend)
            | (Trigger::After(at), Point::AfterAppend)
            | (Trigger::Piece(at), Point::Piece)
            | (Trigger::Tool(at), Point::Tool) => at,
            _ => return,
        };
        if at == passed {
            self.burn();
            future::pending::<()>().await;
        }
    }

    /// It ends now.
    pub(super) fn burn(&self) {
        self.burnt.notify_one();
    }

    /// When the process ends.
    pub(super) async fn burnt(&self) {
        match self.trigger {
            Trigger::Time(ms) => tokio::time::sleep(std::time::Duration::from_millis(ms)).await,
            _ => self.burnt.notified().await,
        }
    }
}
