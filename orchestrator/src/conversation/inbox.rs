//! Where a writer takes in what it is told.

use std::{
    collections::VecDeque,
    iter,
    task::{Context, Poll, ready},
};

use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Control;

/// Commands that may wait for a turn to take them in.
const PLACES: usize = 64;

/// Where a conversation's one writer takes in what it is told. A shutdown waits as long as there is one.
pub(crate) struct Inbox {
    /// What comes before all else.
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

    /// The next command, if there is one already.
    pub(super) fn take(&mut self) -> Option<Box<Control>> {
        self.first.pop_front().or_else(|| self.control.try_recv().ok())
    }

    /// Drops those of the next so many commands that were meant for a turn which is over. Messages stay, whichever turn
    /// they come to, and so does a close.
    pub(crate) fn drop_stale(&mut self, count: usize) {
        let came = iter::from_fn(|| self.control.try_recv().ok()).take(count);
        self.first.extend(came.filter(|control| control.outlives_a_turn()));
    }

    /// Ready once there is a command, which stays the next one.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.first.is_empty() {
            let Some(next) = ready!(self.control.poll_recv(cx)) else { return Poll::Pending };
            self.first.push_back(next);
        }
        Poll::Ready(())
    }

    /// The next command. Never none: a conversation keeps the other end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<Control>>> {
        match self.first.pop_front() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.control.poll_recv(cx),
        }
    }
}
