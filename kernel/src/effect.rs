//! Effects: the outputs of a transition, each emitted once.

use alloc::vec::{Drain, Vec};

use everturn_wire::{Chunk, EventBody, Role};

/// One output of a transition.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// An event for all subscribers.
    Tell(EventBody),
    /// A chunk for the conversation's history.
    Keep(Role, Chunk),
}

/// Collects effects in order. They are committed together: saved, then published.
#[derive(Debug, Default)]
pub struct Effects {
    list: Vec<Effect>,
    binding: bool,
}

impl Effects {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there are no effects.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether any effect must be durable before it is published. Only streamed text need not be.
    pub fn is_binding(&self) -> bool {
        self.binding
    }

    /// Removes and returns all effects.
    pub fn drain(&mut self) -> Drain<'_, Effect> {
        self.binding = false;
        self.list.drain(..)
    }

    pub(crate) fn tell(&mut self, event: EventBody) {
        self.binding |= !event.is_delta();
        self.list.push(Effect::Tell(event));
    }

    pub(crate) fn keep(&mut self, role: Role, chunk: Chunk) {
        self.binding = true;
        self.list.push(Effect::Keep(role, chunk));
    }
}
