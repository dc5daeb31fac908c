//! What one conversation takes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use everturn_wire::{Category, Failure};

use super::{Memory, UNIT};

/// What one conversation takes; given back when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Account(Arc<Inner>);

struct Inner {
    memory: Arc<Memory>,
    key: u64,
    history: AtomicUsize,
}

impl Account {
    pub(super) fn new(memory: Arc<Memory>, key: u64) -> Self {
        Self(Arc::new(Inner { memory, key, history: AtomicUsize::new(0) }))
    }

    /// Adds to the history. What was streamed so far is part of it now.
    pub(crate) fn add(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let history = self.0.history.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if history >= UNIT {
            self.0.memory.set(self.0.key, history, Some(0));
        }
    }

    /// Returns the failure of an answer that would make the conversation this much larger, if it may not be as large.
    pub(crate) fn excess(&self, more: usize) -> Option<Failure> {
        let limit = self.0.memory.limits.conversation;
        let history = self.0.history.load(Ordering::Relaxed);
        // A full conversation is not sent to the provider again.
        let is_sent = history < limit;
        if is_sent && history + more <= limit {
            return None;
        }
        let (category, what) = match is_sent {
            true => (Category::InvalidResponse, "with this answer, the conversation takes"),
            false => (Category::InvalidRequest, "the conversation takes"),
        };
        let mib = limit >> 20;
        let text = format!("{what} more than {mib} MiB, the limit of one (conversation_mib in [memory])");
        let advice = "Start a new conversation, or raise the limit.".to_owned();
        Some(Failure { advice: Some(advice), ..Failure::new(category, false, text) })
    }

    /// Asks for room for a running answer. Pending while another one gives its room back. `gives_way` is set if this one has
    /// to.
    pub(super) fn poll_grow(
        &self,
        answer: usize,
        gives_way: &Arc<AtomicBool>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        self.0.memory.poll_grow(self.0.key, answer, gives_way, cx)
    }

    /// The failure of an answer that has to give way.
    pub(super) fn no_room(&self) -> Failure {
        self.0.memory.no_room()
    }

    /// Gives back what the running answer took.
    pub(super) fn end_answer(&self) {
        self.0.memory.set(self.0.key, self.0.history.load(Ordering::Relaxed), Some(0));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if *self.history.get_mut() >= UNIT {
            self.memory.set(self.key, 0, Some(0));
        }
    }
}
