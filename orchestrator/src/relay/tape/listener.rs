//! Whoever reads an answer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::FutureExt as _;

use super::{super::NoAnswer, Said, Tape};
use crate::caller::{Ended, Over};

/// A listener's position in an answer. Dropping it does not end the call.
pub struct Listener {
    pub(super) tape: Arc<Tape>,
    /// The id of the call.
    pub(super) call: String,
    pub(super) id: u64,
    /// Completes when the caller may no longer listen.
    pub(super) ended: Option<Over>,
    pub(in crate::relay) leaving: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Listener {
    /// Returns the id of the call.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// The same, until its caller is ended.
    pub(in crate::relay) fn until(mut self, ended: Option<&Ended>) -> Self {
        self.ended = ended.map(Ended::over);
        self
    }
}

impl Stream for Listener {
    type Item = Said;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Said>> {
        if self.ended.as_mut().is_some_and(|ended| ended.poll_unpin(cx).is_ready()) {
            self.ended = None;
            self.tape.lock().listeners.remove(&self.id);
            return Poll::Ready(Some(Said::Nothing(NoAnswer::TokenEnded)));
        }
        self.tape.lock().poll(self.id, cx)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        {
            let mut inner = self.tape.lock();
            let left = inner.listeners.remove(&self.id);
            let taken = left.filter(|place| place.has_head).map(|place| place.pieces);
            inner.taken = inner.taken.max(taken);
            if let Some(writer) = inner.writer.take() {
                writer.wake();
            }
        }
        if let Some(leaving) = self.leaving.take() {
            leaving();
        }
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("id", &self.id).finish_non_exhaustive()
    }
}
