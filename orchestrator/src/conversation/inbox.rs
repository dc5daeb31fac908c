//! The command queue of a conversation's driver.

use std::{
    collections::VecDeque,
    iter,
    task::{Context, Poll, ready},
};

use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Control;

/// Maximum number of commands that wait for a turn.
const PLACES: usize = 64;

/// The command queue of a conversation's only driver. A shutdown waits until it is dropped.
pub(crate) struct Inbox {
    /// Handled before `control`.
    first: VecDeque<Box<Control>>,
    control: mpsc::Receiver<Box<Control>>,
    _present: TaskTrackerToken,
}

impl Inbox {
    pub(super) fn new(present: TaskTrackerToken) -> (mpsc::Sender<Box<Control>>, Self) {
        let (sender, control) = mpsc::channel(PLACES);
        (sender, Self { first: VecDeque::new(), control, _present: present })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.control.is_empty()
    }

    /// Returns the next command that is already there.
    pub(super) fn take(&mut self) -> Option<Box<Control>> {
        self.first.pop_front().or_else(|| self.control.try_recv().ok())
    }

    /// Drops those of the next `count` commands that were meant for a sealed turn. Messages and closes are kept for
    /// whichever turn is next.
    pub(crate) fn drop_stale(&mut self, count: usize) {
        let came = iter::from_fn(|| self.control.try_recv().ok()).take(count);
        self.first.extend(came.filter(|control| control.outlives_a_turn()));
    }

    /// Ready once there is a command; does not consume it.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.first.is_empty() {
            let Some(next) = ready!(self.control.poll_recv(cx)) else { return Poll::Pending };
            self.first.push_back(next);
        }
        Poll::Ready(())
    }

    /// Returns the next command. Never `None`, as the conversation keeps the sender.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<Control>>> {
        match self.first.pop_front() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.control.poll_recv(cx),
        }
    }
}
