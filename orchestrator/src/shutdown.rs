//! Shutting down: how far it is, and who still runs.

use std::{
    fmt,
    sync::atomic::{AtomicU8, Ordering},
};

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::Error;

/// How far an orchestrator is on its way from open to down. Asked for with every piece of streamed text, so it is one
/// byte to look at.
#[derive(Default)]
pub(crate) struct Shutdown {
    stage: AtomicU8,
    writers: TaskTracker,
    down: CancellationToken,
}

/// One after the other, never back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Turns begin.
    Open,
    /// No turn begins; what runs may go on, and begins nothing new.
    Draining,
    /// What runs is left as it is.
    Leaving,
    /// The process is about to end: nothing is saved any more.
    Abandoned,
}

impl Shutdown {
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Open,
            1 => Stage::Draining,
            2 => Stage::Leaving,
            _ => Stage::Abandoned,
        }
    }

    /// Refuses what may be done as long as it is open only.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.stage() == Stage::Open { Ok(()) } else { Err(Error::ShuttingDown) }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
    }

    /// Held together with a writer's place.
    pub(crate) fn present(&self) -> TaskTrackerToken {
        self.writers.token()
    }

    /// Waits until no writer's place is held.
    pub(crate) async fn quiet(&self) {
        self.writers.close();
        self.writers.wait().await;
    }

    pub(crate) fn set_down(&self) {
        self.down.cancel();
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.is_cancelled()
    }

    pub(crate) async fn down(&self) {
        self.down.cancelled().await;
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown").field("stage", &self.stage()).finish_non_exhaustive()
    }
}
