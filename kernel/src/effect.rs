//! Effects: what a transition did, told once.

use alloc::vec::{Drain, Vec};

use everturn_wire::{Chunk, EventBody, Role};

/// One thing that a transition did.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// An event for everyone who watches.
    Tell(EventBody),
    /// A chunk for the conversation's history.
    Keep(Role, Chunk),
}

/// Collects effects, in order. To be committed as one: saved, then told.
#[derive(Debug, Default)]
pub struct Effects {
    list: Vec<Effect>,
    binding: bool,
}

impl Effects {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether some must be durable before they are told: all but streamed text.
    pub fn is_binding(&self) -> bool {
        self.binding
    }

    /// Takes them all out.
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
