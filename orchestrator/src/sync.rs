//! The lock of what many threads touch: of the seat, and of the answers of calls. Tests replace it by a model.

#[cfg(test)]
use std::sync::TryLockError;
use std::sync::{Mutex as Lock, MutexGuard, PoisonError};

/// A point where a model may switch threads.
pub(crate) fn moment() {
    #[cfg(test)]
    model::switch();
}

/// A mutex that is held only briefly and ignores poisoning.
#[derive(Default)]
pub(crate) struct Mutex<T>(Lock<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Lock::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        moment();
        // A model runs one thread at a time: one that waited here for another would wait for ever.
        #[cfg(test)]
        while model::is_running() {
            match self.0.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => model::switch(),
            }
        }
        self.lock_at_once()
    }

    /// Like [`lock`](Self::lock), but no model switches threads here. For what has no effect on the value.
    pub(crate) fn lock_at_once(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs threads in every order, or in many.
#[cfg(test)]
pub(crate) mod model {
    use std::{
        cell::Cell,
        panic::{AssertUnwindSafe, catch_unwind},
    };

    use shuttle::{
        scheduler::{DfsScheduler, RandomScheduler},
        thread,
    };

    thread_local! {
        /// Whether a model runs on this thread.
        static MODELLED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_running() -> bool {
        MODELLED.get()
    }

    pub(super) fn switch() {
        if is_running() {
            thread::yield_now();
        }
    }

    /// Runs it in every order, or in so many.
    pub(crate) fn explore(orders: Option<usize>, run: impl Fn() + Send + Sync + 'static) {
        let modelled = move || {
            MODELLED.set(true);
            run();
        };
        let config = shuttle::Config::new();
        match orders {
            Some(orders) => drop(shuttle::Runner::new(RandomScheduler::new(orders), config).run(modelled)),
            None => drop(shuttle::Runner::new(DfsScheduler::new(None, false), config).run(modelled)),
        }
        MODELLED.set(false);
    }

    /// Explores something broken. Returns the text of the panic that an order led to.
    pub(crate) fn found(orders: Option<usize>, run: impl Fn() + Send + Sync + 'static) -> String {
        let lost = catch_unwind(AssertUnwindSafe(|| explore(orders, run)));
        MODELLED.set(false);
        crate::panic::panic_text(lost.unwrap_err().as_ref()).to_owned()
    }

    /// Runs these at once, to their end.
    pub(crate) fn at_once(threads: Vec<Box<dyn FnOnce() + Send>>) {
        let running: Vec<_> = threads.into_iter().map(|thread| thread::spawn(thread)).collect();
        running.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
