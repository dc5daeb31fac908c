//! Tasks that are spawned when there is something to do.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether such a task runs.
#[derive(Default)]
pub(crate) struct Runs(Arc<AtomicBool>);

/// The task runs until this is dropped: at its end, or with its runtime. Then another one can be spawned, on another runtime.
pub(crate) struct Running(Arc<AtomicBool>);

impl Runs {
    /// Returns what the task must keep; `None` if it runs already.
    pub(crate) fn begin(&self) -> Option<Running> {
        let runs = self.0.load(Ordering::Relaxed) || self.0.swap(true, Ordering::AcqRel);
        (!runs).then(|| Running(self.0.clone()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
