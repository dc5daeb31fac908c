//! What one append writes.

use std::sync::Arc;

use everturn_wire::{StoredChunk, TurnMetrics};

use super::{Head, StoredEvent, TurnRecord};
use crate::weight;

/// One append: the state of a conversation after it, and what it adds to the history and the event stream.
///
/// The state is complete, so that a store can keep an append as one record and load a conversation from the latest one.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The head after the append. A stored title is kept.
    pub head: Head,
    /// The unsealed turn after the append. `None`: no turn runs.
    pub turn: Option<Box<TurnRecord>>,
    /// Chunks to add to the history, in order. The `seq` of each is the previous one plus 1.
    pub chunks: Vec<Arc<StoredChunk>>,
    /// Events to add to the event stream, in order.
    pub events: Vec<StoredEvent>,
    /// Figures of the turn that this append seals. `events` belong to this turn.
    pub sealed: Option<Box<TurnMetrics>>,
    /// Events to add after `events` that belong to the next turn.
    pub next_events: Vec<StoredEvent>,
}

impl Commit {
    /// Changes the head and nothing else; no turn runs.
    pub fn new(head: Head) -> Self {
        Self {
            head,
            turn: None,
            chunks: Vec::new(),
            events: Vec::new(),
            sealed: None,
            next_events: Vec::new(),
        }
    }

    /// Sets the unsealed turn.
    #[must_use]
    pub fn turn(self, turn: TurnRecord) -> Self {
        Self { turn: Some(Box::new(turn)), ..self }
    }

    /// Adds a chunk.
    #[must_use]
    pub fn chunk(mut self, chunk: impl Into<Arc<StoredChunk>>) -> Self {
        self.chunks.push(chunk.into());
        self
    }

    /// Adds an event; after [`Self::seal`], one of the next turn.
    #[must_use]
    pub fn event(mut self, event: StoredEvent) -> Self {
        let events = if self.sealed.is_some() { &mut self.next_events } else { &mut self.events };
        events.push(event);
        self
    }

    /// Seals the running turn.
    #[must_use]
    pub fn seal(self, figures: TurnMetrics) -> Self {
        Self { sealed: Some(Box::new(figures)), ..self }
    }

    /// Returns the approximate size of what it adds, in bytes.
    pub fn size(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| weight::of_chunk(chunk));
        chunks.sum::<usize>() + self.all_events().map(|event| event.json.len()).sum::<usize>()
    }

    /// Returns all its events in order.
    pub fn all_events(&self) -> impl Iterator<Item = &StoredEvent> {
        self.events.iter().chain(&self.next_events)
    }
}
