//! Updates the row of a conversation in one statement, as each statement costs about as much as an insert.

use everturn_ports::{Head, TurnRecord, Version, Wait};
use everturn_store_rows::{integer, status_code};
use everturn_wire::{ConversationId, DoneReason};
use rusqlite::{Connection, Result, Statement, ToSql, params};

use super::left::Left;
use crate::record::{to_json, unfit};

const UPDATE: &str =
    "UPDATE conversation SET version = ?, created_at = ?, last_activity_at = ?, title = coalesce(nullif(title, ''), ?),
    status = ?, model = ?, ends = ?, last_seq = ?, end_reason = ?, end_version = ?, turn = ?, wake_at = ?, wait_ms = ?, for_person = ?, turn_begins = ?,
    turn_seq = ?, definition = ? WHERE key = ?";

const INSERT: &str =
    "INSERT INTO conversation (version, created_at, last_activity_at, title, status, model, ends,
    last_seq, end_reason, end_version, turn, wake_at, wait_ms, for_person, turn_begins, turn_seq, definition, id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The new values of a conversation's row.
pub(super) struct Row<'a> {
    pub(super) version: Version,
    pub(super) head: &'a Head,
    /// The unsealed turn, and the key of its definition.
    pub(super) turn: Option<(&'a TurnRecord, i64)>,
}

impl Row<'_> {
    /// Writes the values to the row with this key, which is returned.
    pub(super) fn update(&self, on: &Connection, key: i64, left: &mut Left) -> Result<i64> {
        self.execute(on, UPDATE, key)?;
        self.running(on, key, left)?;
        Ok(key)
    }

    /// Inserts the row of a new conversation. Returns its key.
    pub(super) fn insert(&self, on: &Connection, id: &ConversationId, left: &mut Left) -> Result<i64> {
        self.execute(on, INSERT, id.as_str())?;
        let key = on.last_insert_rowid();
        self.running(on, key, left)?;
        Ok(key)
    }

    /// Runs a statement whose parameters are the columns, followed by what identifies the row.
    fn execute(&self, on: &Connection, sql: &str, row: impl ToSql) -> Result<()> {
        let mut statement = on.prepare_cached(sql)?;
        let mut bind = Bind { to: &mut statement, last: 0 };
        bind.value(integer(self.version.0))?;
        bind.head(self.head)?;
        bind.end(self.head.end_reason.as_ref(), self.version)?;
        bind.turn(self.turn)?;
        bind.value(row)?;
        statement.raw_execute().map(drop)
    }

    /// Writes a turn that does not wait to the table of running turns. Otherwise, a row that may exist there is
    /// outdated.
    fn running(&self, on: &Connection, key: i64, left: &mut Left) -> Result<()> {
        let Some((turn, definition)) = self.turn.filter(|(turn, _)| turn.wait == Wait::Now) else {
            return left.add(on, key);
        };
        left.remove(on)?;
        let sql = "REPLACE INTO running (conversation, version, turn, turn_begins, turn_seq, definition)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (version, begins) = (integer(self.version.0), integer(turn.from.value()));
        let columns =
            params![key, version, to_json(&turn.snapshot)?, begins, integer(turn.first_seq), definition];
        on.prepare_cached(sql)?.execute(columns).map(drop)
    }
}

/// Binds the parameters of a statement in order.
struct Bind<'s, 'c> {
    to: &'s mut Statement<'c>,
    last: usize,
}

impl Bind<'_, '_> {
    fn value(&mut self, value: impl ToSql) -> Result<()> {
        self.last += 1;
        self.to.raw_bind_parameter(self.last, value)
    }

    fn head(&mut self, head: &Head) -> Result<()> {
        self.value(integer(head.created_at.0))?;
        self.value(integer(head.last_activity_at.0))?;
        self.value(&head.title)?;
        self.value(status_code(head.status).map_err(unfit)?)?;
        self.value(&head.model)?;
        self.value(integer(head.end.value()))?;
        self.value(integer(head.last_seq))
    }

    /// Binds why the last turn ended and the version that this was written with; nulls if it is not known.
    fn end(&mut self, reason: Option<&DoneReason>, version: Version) -> Result<()> {
        self.value(reason.map(DoneReason::as_str))?;
        self.value(reason.map(|_| integer(version.0)))
    }

    /// Binds a waiting turn; nulls for any other.
    fn turn(&mut self, turn: Option<(&TurnRecord, i64)>) -> Result<()> {
        let Some((turn, definition)) = turn.filter(|(turn, _)| turn.wait != Wait::Now) else {
            // Unbound parameters are null.
            self.last += 3;
            self.value(false)?;
            self.last += 3;
            return Ok(());
        };
        let until = turn.wait.until();
        self.value(to_json(&turn.snapshot)?)?;
        self.value(until.map(|until| integer(until.at.0)))?;
        self.value(until.map(|until| integer(until.decided_ms)))?;
        self.value(matches!(turn.wait, Wait::Person { .. }))?;
        self.value(integer(turn.from.value()))?;
        self.value(integer(turn.first_seq))?;
        self.value(definition)
    }
}
