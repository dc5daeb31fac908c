//! The lock of the seat, replaceable by a model in tests.

#[cfg(test)]
use std::cell::Cell;
use std::sync::{Mutex as Lock, MutexGuard, PoisonError};

#[cfg(test)]
thread_local! {
    /// Whether a model runs on this thread.
    pub(super) static MODELLED: Cell<bool> = const { Cell::new(false) };
}

/// A point where a model may switch threads.
pub(super) fn moment() {
    #[cfg(test)]
    if MODELLED.get() {
        shuttle::thread::yield_now();
    }
}

/// A mutex that is held only briefly and ignores poisoning.
pub(super) struct Mutex<T>(Lock<T>);

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Lock::new(value))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        // Nothing under the lock blocks, so yielding before it is enough.
        moment();
        self.lock_at_once()
    }

    /// Like [`lock`](Self::lock), but no model switches threads here. For what has no effect on the value.
    pub(super) fn lock_at_once(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
