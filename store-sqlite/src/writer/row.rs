//! What an append changes in the row of its conversation: one statement, as each costs about as much as an insert.

use everturn_orchestrator::{Head, TurnRecord, Version, Wait};
use everturn_wire::ConversationId;
use rusqlite::{Connection, Result, Statement, ToSql, params};

use crate::record::{integer, status_code, to_json};

macro_rules! head {
    () => {
        ", created_at = ?, last_activity_at = ?, title = ?, status = ?, model = ?, ends = ?, last_seq = ?"
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
    pub(super) fn update(&self, on: &Connection, key: i64) -> Result<i64> {
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
        if let Some(turn) = &self.turn {
            match turn.running() {
                Some(running) => running.write(on, key)?,
                None => on
                    .prepare_cached("DELETE FROM running WHERE conversation = ?1")?
                    .execute([key])
                    .map(drop)?,
            }
        }
        Ok(key)
    }

    /// Makes the row of a new conversation; its key.
    pub(super) fn insert(&self, on: &Connection, id: &ConversationId) -> Result<i64> {
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
        if let Some(running) = self.turn.as_ref().and_then(Unsealed::running) {
            running.write(on, key)?;
        }
        Ok(key)
    }
}

impl<'a> Unsealed<'a> {
    /// The turn, if it does not wait.
    fn running(&self) -> Option<Running<'a>> {
        match *self {
            Self::Turn(turn, definition) if turn.wait == Wait::Now => Some(Running { turn, definition }),
            Self::Turn(..) | Self::None => None,
        }
    }
}

/// A turn that does not wait.
struct Running<'a> {
    turn: &'a TurnRecord,
    definition: i64,
}

impl Running<'_> {
    fn write(&self, on: &Connection, key: i64) -> Result<()> {
        let Self { turn, definition } = self;
        let sql = "REPLACE INTO running (conversation, turn, turn_begins, turn_seq, definition)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let (begins, seq) = (integer(turn.from.value()), integer(turn.first_seq));
        let columns = params![key, to_json(&turn.snapshot)?, begins, seq, definition];
        on.prepare_cached(sql)?.execute(columns).map(drop)
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
