//! The progress of a shutdown, and the writers that still run.

use std::{
    fmt,
    sync::atomic::{AtomicU8, Ordering},
};

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::Error;

/// How far an orchestrator has shut down. The stage is one byte, because it is checked for every piece of streamed
/// text.
#[derive(Default)]
pub(crate) struct Shutdown {
    stage: AtomicU8,
    writers: TaskTracker,
    down: CancellationToken,
}

/// The stages of a shutdown, in order; there is no way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Turns may begin.
    Open,
    /// No turn begins; running turns may continue, but begin nothing new.
    Draining,
    /// Running turns are left as they are.
    Leaving,
    /// The process is about to end: nothing more is saved.
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

    /// Refuses what is allowed only while the orchestrator is open.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.stage() == Stage::Open { Ok(()) } else { Err(Error::ShuttingDown) }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
    }

    /// Returns a token that is held together with a seat.
    pub(crate) fn present(&self) -> TaskTrackerToken {
        self.writers.token()
    }

    /// Returns the number of seats that are held.
    pub(crate) fn writers(&self) -> usize {
        self.writers.len()
    }

    /// Waits until no seat is held.
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
