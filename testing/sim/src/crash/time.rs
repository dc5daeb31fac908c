//! The true time of a world.

use everturn_orchestrator::kernel::Millis;
use tokio::time::Instant;

/// The start time of a world, as its clock shows it.
const BEGIN: u64 = 1_800_000_000_000;

/// The true time of a world. It never goes back, and passes while no process runs.
#[derive(Debug, Default)]
pub(super) struct Time {
    /// Number of processes begun.
    pub(super) life: usize,
    /// When the present process began, in milliseconds since the world's start.
    pub(super) life_began: u64,
    /// The time since then during which the machine was suspended.
    pub(super) suspended: u64,
    /// When the machine last resumed, in the present process.
    pub(super) woke_up: Option<u64>,
    /// By how much the wall clock was set back in total.
    pub(super) set_back: u64,
    /// When the journal last failed.
    pub(super) unsaved: Option<u64>,
    pub(super) began: Option<Instant>,
}

impl Time {
    /// Returns milliseconds since the world's start.
    pub(super) fn now(&self) -> u64 {
        let ran = self.began.map_or(0, |began| began.elapsed().as_millis() as u64);
        self.life_began + ran + self.suspended
    }

    /// Suspends the machine for this long.
    pub(super) fn suspend(&mut self, ms: u64) {
        self.suspended += ms;
        self.woke_up = Some(self.now());
    }

    /// Returns the wall clock's time.
    pub(super) fn wall(&self) -> Millis {
        Millis((BEGIN + self.now()).saturating_sub(self.set_back))
    }
}
