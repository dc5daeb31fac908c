//! The lock of the seat, so that a model can take its place.

#[cfg(test)]
use std::cell::Cell;
use std::sync::{Mutex as Lock, MutexGuard, PoisonError};

#[cfg(test)]
thread_local! {
    /// A model runs on this thread: each lock is a place where it may let another of its threads run.
    pub(super) static MODELLED: Cell<bool> = const { Cell::new(false) };
}

/// A mutex that is held for moments only, and is no worse for a panic under it.
pub(super) struct Mutex<T>(Lock<T>);

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Lock::new(value))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        // What happens under the lock happens at once, so it is enough to let others run before.
        #[cfg(test)]
        if MODELLED.get() {
            shuttle::thread::yield_now();
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
