//! A waker that remembers whether it was woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// Forwards a wake-up, and records it.
pub(super) struct Nudge {
    came: AtomicBool,
    next: Waker,
}

impl Nudge {
    pub(super) fn passing_on(next: &Waker) -> Arc<Self> {
        Arc::new(Self { came: AtomicBool::new(false), next: next.clone() })
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Arc::clone(self).into()
    }

    pub(super) fn came(&self) -> bool {
        self.came.load(Ordering::Acquire)
    }
}

impl Wake for Nudge {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.came.store(true, Ordering::Release);
        self.next.wake_by_ref();
    }
}
