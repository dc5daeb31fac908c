//! The rows that an append adds to a conversation; they are never changed.

use everturn_orchestrator::{Commit, StoredEvent};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use rusqlite::{
    Connection, Result, ToSql, params,
    types::{ToSqlOutput, ValueRef},
};

use crate::{
    record::{CHUNK, RUN, SEAL, integer, role_code, to_json},
    run::{Chunks, Ids, Run},
};

/// Writes what one append adds.
pub(super) struct Added<'c> {
    on: &'c Connection,
    conversation: i64,
    ids: Ids,
    /// Time of the append, in epoch milliseconds.
    time: i64,
    chunks: Chunks,
    /// Events not yet written.
    run: Option<Run>,
}

impl<'c> Added<'c> {
    /// Adds to the conversation with this key and id.
    pub(super) fn new(on: &'c Connection, conversation: i64, id: &ConversationId, time: i64) -> Self {
        Self { on, conversation, ids: Ids::of(id), time, chunks: Chunks::default(), run: None }
    }

    /// Writes what a commit adds.
    pub(super) fn all(mut self, commit: &Commit) -> Result<()> {
        for chunk in &commit.chunks {
            self.chunk(chunk)?;
        }
        for event in &commit.events {
            self.event(event)?;
        }
        if let Some(figures) = &commit.sealed {
            self.seal(figures)?;
        }
        for event in &commit.next_events {
            self.event(event)?;
        }
        self.end_run()
    }

    fn chunk(&mut self, chunk: &StoredChunk) -> Result<()> {
        let json = to_json(&chunk.chunk)?;
        let sql = "INSERT INTO entry (conversation, kind, place, role, supersedes, text)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (seq, role) = (integer(chunk.seq), role_code(chunk.role)?);
        let supersedes = chunk.supersedes.map(integer);
        self.on.prepare_cached(sql)?.execute(params![
            self.conversation,
            CHUNK,
            seq,
            role,
            supersedes,
            json
        ])?;
        self.chunks.push(chunk.seq, json);
        Ok(())
    }

    fn event(&mut self, event: &StoredEvent) -> Result<()> {
        if self.run.as_mut().is_some_and(|run| run.push(event, &self.ids, &mut self.chunks)) {
            return Ok(());
        }
        self.end_run()?;
        // A new run always accepts its first event.
        self.run.insert(Run::at(event.start)).push(event, &self.ids, &mut self.chunks);
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let sql = "INSERT INTO entry (conversation, kind, place, begins, events, text)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (begins, ends) = (integer(run.begins.value()), integer(run.ends.value()));
        let events = integer(run.events as u64);
        self.on.prepare_cached(sql)?.execute(params![
            self.conversation,
            RUN,
            ends,
            begins,
            events,
            Text(&run.text())
        ])?;
        Ok(())
    }

    fn seal(&mut self, figures: &TurnMetrics) -> Result<()> {
        // What follows belongs to the next turn.
        self.end_run()?;
        let sql = "INSERT INTO entry (conversation, kind, place, sealed_at, ends, text) VALUES (?1, ?2,
            (SELECT coalesce(max(place), 0) + 1 FROM entry WHERE conversation = ?1 AND kind = ?2),
            ?4,
            (SELECT coalesce(max(place), 0) FROM entry WHERE conversation = ?1 AND kind = ?3), ?5)";
        let columns = params![self.conversation, SEAL, RUN, self.time, to_json(figures)?];
        self.on.prepare_cached(sql)?.execute(columns).map(drop)
    }
}

/// JSON bytes, stored as text.
struct Text<'a>(&'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}
