//! The lock of the seat, replaceable by a model in tests.

#[cfg(test)]
use std::cell::Cell;
use std::sync::{Mutex as Lock, MutexGuard, PoisonError};

#[cfg(test)]
thread_local! {
    /// Whether a model runs on this thread: each lock is then a point where it may switch threads.
    pub(super) static MODELLED: Cell<bool> = const { Cell::new(false) };
}

/// A mutex that is held only briefly and ignores poisoning.
pub(super) struct Mutex<T>(Lock<T>);

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Lock::new(value))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        // Nothing under the lock blocks, so yielding before it is enough.
        #[cfg(test)]
        if MODELLED.get() {
            shuttle::thread::yield_now();
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
