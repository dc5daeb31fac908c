//! The life of a process.

use std::{
    future,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// The life of a process.
#[derive(Default)]
pub(super) struct Life {
    over: AtomicBool,
    ended: Notify,
}

impl Life {
    /// Ends the process.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.ended.notify_waiters();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Never returns if the process has ended: nothing that it was doing goes on.
    pub(super) async fn goes_on(&self) {
        if self.is_over() {
            future::pending::<()>().await;
        }
    }

    /// Waits until the process ends.
    pub(super) async fn ended(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        // Register before checking, so that no notification is missed.
        ended.as_mut().enable();
        if !self.is_over() {
            ended.await;
        }
    }

    /// Waits for something of the process; `None` if it ends first.
    pub(super) async fn while_it_lasts<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.ended() => None,
            done = work => Some(done),
        }
    }
}
