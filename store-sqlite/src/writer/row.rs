//! What an append changes in the row of its conversation: one statement, as each costs about as much as an insert.

use everturn_orchestrator::{Head, TurnRecord, Version, Wait};
use everturn_wire::ConversationId;
use rusqlite::{Connection, Result, Statement, ToSql, params};

use super::left::Left;
use crate::record::{integer, status_code, to_json};

macro_rules! head {
    () => {
        ", created_at = ?, last_activity_at = ?, title = coalesce(nullif(title, ''), ?), status = ?, model = ?, ends = ?, last_seq = ?"
    };
}

macro_rules! turn {
    () => {
        ", turn = ?, wake_at = ?, wait_ms = ?, for_person = ?, turn_begins = ?, turn_seq = ?, definition = ?"
    };
}

macro_rules! update {
    ($($columns:tt)*) => {
        concat!("UPDATE conversation SET version = ?", $($columns)* " WHERE key = ?")
    };
}

const VERSION: &str = update!();
const HEAD: &str = update!(head!(),);
const TURN: &str = update!(turn!(),);
const BOTH: &str = update!(head!(), turn!(),);

const INSERT: &str =
    "INSERT INTO conversation (version, created_at, last_activity_at, title, status, model, ends,
    last_seq, turn, wake_at, wait_ms, for_person, turn_begins, turn_seq, definition, id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The new values of a conversation's row. `None`: as it was.
pub(super) struct Row<'a> {
    pub(super) version: Version,
    pub(super) head: Option<&'a Head>,
    pub(super) turn: Option<Unsealed<'a>>,
}

/// The unsealed turn of a conversation.
pub(super) enum Unsealed<'a> {
    None,
    /// With the key of its definition.
    Turn(&'a TurnRecord, i64),
}

impl Row<'_> {
    /// Writes them to the row of this key, which is returned.
    pub(super) fn update(&self, on: &Connection, key: i64, left: &mut Left) -> Result<i64> {
        let sql = match (self.head, &self.turn) {
            (Some(_), Some(_)) => BOTH,
            (Some(_), None) => HEAD,
            (None, Some(_)) => TURN,
            (None, None) => VERSION,
        };
        let mut statement = on.prepare_cached(sql)?;
        let mut bind = Bind { to: &mut statement, last: 0 };
        bind.value(integer(self.version.0))?;
        if let Some(head) = self.head {
            bind.head(head)?;
        }
        if let Some(turn) = &self.turn {
            bind.turn(turn)?;
        }
        bind.value(key)?;
        statement.raw_execute()?;
        match &self.turn {
            None => self.moved(on, key)?,
            Some(turn) => self.running(on, key, turn, left)?,
        }
        Ok(key)
    }

    /// Makes the row of a new conversation; its key.
    pub(super) fn insert(&self, on: &Connection, id: &ConversationId, left: &mut Left) -> Result<i64> {
        let mut statement = on.prepare_cached(INSERT)?;
        let mut bind = Bind { to: &mut statement, last: 0 };
        bind.value(integer(self.version.0))?;
        match self.head {
            Some(head) => bind.head(head)?,
            None => bind.last += HEAD_COLUMNS,
        }
        bind.turn(self.turn.as_ref().unwrap_or(&Unsealed::None))?;
        bind.value(id.as_str())?;
        statement.raw_execute()?;
        let key = on.last_insert_rowid();
        if let Some(turn) = &self.turn {
            self.running(on, key, turn, left)?;
        }
        Ok(key)
    }

    /// Writes the turn if it runs; else what was there counts no more.
    fn running(&self, on: &Connection, key: i64, turn: &Unsealed<'_>, left: &mut Left) -> Result<()> {
        let (turn, definition) = match turn {
            Unsealed::Turn(turn, definition) if turn.wait == Wait::Now => (turn, definition),
            Unsealed::Turn(..) | Unsealed::None => return left.add(on, key),
        };
        left.remove(on)?;
        let sql = "REPLACE INTO running (conversation, version, turn, turn_begins, turn_seq, definition)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (version, begins) = (integer(self.version.0), integer(turn.from.value()));
        let columns =
            params![key, version, to_json(&turn.snapshot)?, begins, integer(turn.first_seq), definition];
        on.prepare_cached(sql)?.execute(columns).map(drop)
    }

    /// The turn that runs goes on to count.
    fn moved(&self, on: &Connection, key: i64) -> Result<()> {
        let sql = "UPDATE running SET version = ?2 WHERE conversation = ?1 AND version = ?2 - 1";
        on.prepare_cached(sql)?.execute(params![key, integer(self.version.0)]).map(drop)
    }
}

/// How many values [`Bind::head`] binds.
const HEAD_COLUMNS: usize = 7;

/// Binds the parameters of a statement, the first one first.
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
        self.value(status_code(head.status)?)?;
        self.value(&head.model)?;
        self.value(integer(head.end.value()))?;
        self.value(integer(head.last_seq))
    }

    /// A turn that waits; nulls for any other.
    fn turn(&mut self, turn: &Unsealed<'_>) -> Result<()> {
        let (turn, definition) = match turn {
            // Parameters that are not bound are null.
            Unsealed::Turn(turn, definition) if turn.wait != Wait::Now => (turn, definition),
            Unsealed::Turn(..) | Unsealed::None => {
                self.last += 3;
                self.value(false)?;
                self.last += 3;
                return Ok(());
            }
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
