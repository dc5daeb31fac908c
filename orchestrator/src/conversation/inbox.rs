//! Where a writer takes in what it is told.

use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Control;

/// Commands that may wait for a turn to take them in.
const PLACES: usize = 64;

/// Where a conversation's one writer takes in what it is told. A shutdown waits as long as there is one.
pub(crate) struct Inbox {
    control: mpsc::Receiver<Box<Control>>,
    _present: TaskTrackerToken,
}

impl Inbox {
    pub(super) fn new(present: TaskTrackerToken) -> (mpsc::Sender<Box<Control>>, Self) {
        let (sender, control) = mpsc::channel(PLACES);
        (sender, Self { control, _present: present })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.control.is_empty()
    }

    /// The next command, if there is one already.
    pub(super) fn take(&mut self) -> Option<Box<Control>> {
        self.control.try_recv().ok()
    }

    /// The next command. Never none: a conversation keeps the other end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<Control>>> {
        self.control.poll_recv(cx)
    }
}
