//! The rows that an append adds to a conversation; they are never changed.

use everturn_ports::Commit;
use everturn_store_rows::{CHUNK, Entry, RUN, SEAL, entries, integer};
use everturn_wire::ConversationId;
use rusqlite::{
    Connection, Result, ToSql, params,
    types::{ToSqlOutput, ValueRef},
};

use crate::record;

/// Writes what one append adds.
pub(super) struct Added<'c> {
    pub(super) on: &'c Connection,
    /// The key of the conversation.
    pub(super) conversation: i64,
    /// Time of the append, in epoch milliseconds.
    pub(super) time: i64,
}

impl Added<'_> {
    /// Writes what a commit adds to the conversation with this id.
    pub(super) fn all(self, id: &ConversationId, commit: &Commit) -> Result<()> {
        entries(id, commit, |entry| self.add(entry), record::unfit)
    }

    fn add(&self, entry: Entry<'_>) -> Result<()> {
        let to = self.conversation;
        match entry {
            Entry::Chunk { seq, role, supersedes, json } => {
                let sql = "INSERT INTO entry (conversation, kind, place, role, supersedes, text)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let supersedes = supersedes.map(integer);
                self.insert(sql, params![to, CHUNK, integer(seq), role, supersedes, json])
            }
            Entry::Run { begins, ends, events, text } => {
                let sql = "INSERT INTO entry (conversation, kind, place, begins, events, text)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let (begins, ends) = (integer(begins.value()), integer(ends.value()));
                self.insert(sql, params![to, RUN, ends, begins, integer(events as u64), Text(text)])
            }
            Entry::Seal { json } => {
                let sql =
                    "INSERT INTO entry (conversation, kind, place, sealed_at, ends, text) VALUES (?1, ?2,
                    (SELECT coalesce(max(place), 0) + 1 FROM entry WHERE conversation = ?1 AND kind = ?2),
                    ?4,
                    (SELECT coalesce(max(place), 0) FROM entry WHERE conversation = ?1 AND kind = ?3), ?5)";
                self.insert(sql, params![to, SEAL, RUN, self.time, json])
            }
        }
    }

    fn insert(&self, sql: &str, columns: &[&dyn ToSql]) -> Result<()> {
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
