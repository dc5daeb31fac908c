//! Crash points.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Counts the points at which the process can end, and decides at which it does.
#[derive(Clone)]
pub(crate) struct Crash {
    passed: Arc<AtomicU32>,
    at: Option<u32>,
}

impl Crash {
    pub(crate) fn never() -> Self {
        Self { passed: Arc::new(AtomicU32::new(0)), at: None }
    }

    pub(crate) fn at(point: u32) -> Self {
        Self { at: Some(point), ..Self::never() }
    }

    pub(crate) fn passed(&self) -> u32 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Whether the process ends at this point.
    pub(crate) fn is_now(&self) -> bool {
        Some(self.passed.fetch_add(1, Ordering::Relaxed)) == self.at
    }
}
