//! One append, as statements.

use everturn_orchestrator::{Commit, Definition, JournalError, Version};
use everturn_wire::ConversationId;
use rusqlite::{Connection, OptionalExtension as _, Result};
use tokio::sync::oneshot;

use super::{added::Added, group::Known, row::Row};
use crate::record::{count, integer, to_json};

/// One append that waits to be written.
pub(crate) struct Append {
    id: ConversationId,
    expected: Version,
    commit: Commit,
    answer: oneshot::Sender<std::result::Result<Version, JournalError>>,
}

impl Append {
    /// An append, and where its answer will arrive.
    pub(crate) fn new(
        id: ConversationId,
        expected: Version,
        commit: Commit,
    ) -> (Self, oneshot::Receiver<std::result::Result<Version, JournalError>>) {
        let (answer, answered) = oneshot::channel();
        (Self { id, expected, commit, answer }, answered)
    }

    /// Answers who asked, if he still waits.
    pub(super) fn answer(self, answer: std::result::Result<Version, JournalError>) {
        let _ = self.answer.send(answer);
    }

    /// Writes it inside the transaction at hand. A stale one writes nothing.
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
        let version = Version(found.0 + 1);
        let turn = match self.commit.turn.as_deref() {
            Some(turn) => Some((turn, known.definition.key_of(on, &turn.definition)?)),
            None => None,
        };
        let row = Row { version, head: &self.commit.head, turn };
        let key = match there {
            Some((key, _)) => row.update(on, key, &mut known.left)?,
            None => row.insert(on, &self.id, &mut known.left)?,
        };
        Added::new(on, key, &self.id, integer(self.commit.head.last_activity_at.0)).all(&self.commit)?;
        Ok(Ok(version))
    }
}

fn find(on: &Connection, id: &ConversationId) -> Result<Option<(i64, Version)>> {
    on.prepare_cached("SELECT key, version FROM conversation WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, Version(count(row, 1)?))))
        .optional()
}

/// The definition written last. Turns of one orchestrator mostly have the same, and to look one up means to write it as JSON,
/// system prompt included.
#[derive(Debug, Default)]
pub(super) struct LastDefinition(Option<(Definition, i64)>);

impl LastDefinition {
    /// Returns the key of a definition, which is inserted if there is none like it.
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

    /// Its row may be gone: what wrote it was undone, or somebody else removed it.
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
