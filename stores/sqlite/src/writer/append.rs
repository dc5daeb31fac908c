//! Writes one append as SQL statements.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use everturn_ports::{Commit, Definition, JournalError, Version};
use everturn_store_rows::integer;
use everturn_wire::ConversationId;
use rusqlite::{Connection, OptionalExtension as _, Result};
use tokio::sync::oneshot;

use super::{added::Added, left::Left, row::Row};
use crate::record::{count, to_json};

/// State kept between transactions.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) definition: LastDefinition,
    pub(super) left: Left,
    /// The highest version of a conversation that was deleted.
    pub(super) removed: Arc<AtomicU64>,
}

/// An append waiting to be written.
pub(crate) struct Append {
    id: ConversationId,
    expected: Version,
    commit: Commit,
    answer: oneshot::Sender<std::result::Result<Version, JournalError>>,
}

impl Append {
    /// Creates an append, and the receiver of its answer.
    pub(crate) fn new(
        id: ConversationId,
        expected: Version,
        commit: Commit,
    ) -> (Self, oneshot::Receiver<std::result::Result<Version, JournalError>>) {
        let (answer, answered) = oneshot::channel();
        (Self { id, expected, commit, answer }, answered)
    }

    /// Returns the approximate size of what is written, in bytes.
    pub(super) fn size(&self) -> usize {
        self.commit.size()
    }

    /// Sends the result to the caller, if it is still waiting.
    pub(super) fn answer(self, answer: std::result::Result<Version, JournalError>) {
        let _ = self.answer.send(answer);
    }

    /// Writes the append inside the current transaction. A stale one writes nothing.
    pub(super) fn write(
        &self,
        on: &Connection,
        known: &mut Known,
    ) -> Result<std::result::Result<Version, JournalError>> {
        let there = find(on, &self.id)?;
        let found = there.map(|(_, version)| version).unwrap_or_default();
        if found != self.expected {
            return Ok(Err(JournalError::Stale { id: self.id.clone(), expected: self.expected, found }));
        }
        let before = there.map_or_else(|| known.removed.load(Ordering::Relaxed), |_| found.0);
        let version = Version(before + 1);
        let turn = match self.commit.turn.as_deref() {
            Some(turn) => Some((turn, known.definition.key_of(on, &turn.definition)?)),
            None => None,
        };
        let row = Row { version, head: &self.commit.head, turn };
        let key = match there {
            Some((key, _)) => row.update(on, key, &mut known.left)?,
            None => row.insert(on, &self.id, &mut known.left)?,
        };
        let time = integer(self.commit.head.last_activity_at.0);
        Added { on, conversation: key, time }.all(&self.id, &self.commit)?;
        Ok(Ok(version))
    }
}

fn find(on: &Connection, id: &ConversationId) -> Result<Option<(i64, Version)>> {
    on.prepare_cached("SELECT key, version FROM conversation WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, Version(count(row, 1)?))))
        .optional()
}

/// The most recently written definition. The turns of an orchestrator usually have the same, and looking one up means
/// serializing it, system prompt included.
#[derive(Debug, Default)]
pub(super) struct LastDefinition(Option<(Definition, i64)>);

impl LastDefinition {
    /// Returns the key of a definition, inserting it if it is new.
    fn key_of(&mut self, on: &Connection, definition: &Definition) -> Result<i64> {
        match &self.0 {
            Some((last, key)) if last == definition => Ok(*key),
            _ => {
                let key = find_or_insert(on, &to_json(definition)?)?;
                self.0 = Some((definition.clone(), key));
                Ok(key)
            }
        }
    }

    /// Forgets the definition, whose row may be gone because its transaction was rolled back or the row was deleted.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

fn find_or_insert(on: &Connection, definition: &str) -> Result<i64> {
    let known = on
        .prepare_cached("SELECT key FROM definition WHERE json = ?1")?
        .query_row([definition], |row| row.get(0))
        .optional()?;
    match known {
        Some(key) => Ok(key),
        None => on.prepare_cached("INSERT INTO definition (json) VALUES (?1)")?.insert([definition]),
    }
}
