//! Divides an append into the rows that it adds.

use everturn_ports::{Commit, Cursor, StoredEvent};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};

use crate::{
    Unfit, role_code,
    run::{Chunks, Ids, Run},
    to_json,
};

/// The kinds of entries, as stored.
pub const CHUNK: i16 = 0;
/// See [`CHUNK`].
pub const RUN: i16 = 1;
/// See [`CHUNK`].
pub const SEAL: i16 = 2;

/// A row that an append adds to a conversation. It is never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'e> {
    /// A chunk.
    Chunk {
        /// Its place in the history.
        seq: u64,
        /// Its role, as a number.
        role: i16,
        /// The first chunk that it replaces for the model.
        supersedes: Option<u64>,
        /// The chunk. Later entries of the same append may refer to it.
        json: &'e str,
    },
    /// Consecutive events of one turn.
    Run {
        /// Where the first begins.
        begins: Cursor,
        /// Where the last ends.
        ends: Cursor,
        /// Their number.
        events: usize,
        /// The events, to be read by [`crate::events`].
        text: &'e [u8],
    },
    /// The end of a turn: earlier runs belong to it or to earlier turns, later ones to the next.
    Seal {
        /// The figures of the turn.
        json: &'e str,
    },
}

/// Passes what a commit adds to `add`, row by row, in order. `unfit` converts the error about a value that cannot be
/// stored.
///
/// # Errors
/// The first error of `add` or `unfit`.
pub fn entries<E>(
    id: &ConversationId,
    commit: &Commit,
    add: impl FnMut(Entry<'_>) -> Result<(), E>,
    unfit: fn(Unfit) -> E,
) -> Result<(), E> {
    let mut rows = Rows { ids: Ids::of(id), chunks: Chunks::default(), run: None, add, unfit };
    commit.chunks.iter().try_for_each(|chunk| rows.chunk(chunk))?;
    commit.events.iter().try_for_each(|event| rows.event(event))?;
    if let Some(figures) = &commit.sealed {
        rows.seal(figures)?;
    }
    commit.next_events.iter().try_for_each(|event| rows.event(event))?;
    rows.end_run()
}

struct Rows<E, A> {
    ids: Ids,
    chunks: Chunks,
    /// Events not yet passed on.
    run: Option<Run>,
    add: A,
    unfit: fn(Unfit) -> E,
}

impl<E, A: FnMut(Entry<'_>) -> Result<(), E>> Rows<E, A> {
    fn chunk(&mut self, chunk: &StoredChunk) -> Result<(), E> {
        let json = to_json(&chunk.chunk).map_err(self.unfit)?;
        let role = role_code(chunk.role).map_err(self.unfit)?;
        (self.add)(Entry::Chunk { seq: chunk.seq, role, supersedes: chunk.supersedes, json: &json })?;
        self.chunks.push(chunk.seq, json);
        Ok(())
    }

    fn event(&mut self, event: &StoredEvent) -> Result<(), E> {
        if self.run.as_mut().is_some_and(|run| run.push(event, &self.ids, &mut self.chunks)) {
            return Ok(());
        }
        self.end_run()?;
        // A new run always accepts its first event.
        self.run.insert(Run::at(event.start)).push(event, &self.ids, &mut self.chunks);
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), E> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let text = run.text();
        (self.add)(Entry::Run { begins: run.begins, ends: run.ends, events: run.events, text: &text })
    }

    fn seal(&mut self, figures: &TurnMetrics) -> Result<(), E> {
        // What follows belongs to the next turn.
        self.end_run()?;
        let json = to_json(figures).map_err(self.unfit)?;
        (self.add)(Entry::Seal { json: &json })
    }
}
