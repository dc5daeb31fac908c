//! How records are stored in columns.

use std::fmt::Debug;

use everturn_orchestrator::{
    Cursor, Head, Moment, TurnRecord, Wait,
    kernel::{Millis, Snapshot},
};
use everturn_wire::{Chunk, ConversationStatus, DoneReason, Role};
use rusqlite::{Error, Row, types::Type};
use serde::{Deserialize, Serialize};
use serde_json::Deserializer;

/// The columns that [`head`] reads, in its order.
pub(crate) const HEAD: &str = "created_at, last_activity_at, title, status, model, ends, last_seq,
    CASE WHEN end_version = conversation.version THEN end_reason END";

/// The columns that [`turn`] reads, in its order. Those of a waiting turn are in the row of its conversation, those of
/// a running turn in [`RUNNING`], which must be joined.
pub(crate) const TURN: &str = "coalesce(conversation.turn, running.turn),
    coalesce(conversation.turn_begins, running.turn_begins), coalesce(conversation.turn_seq, running.turn_seq),
    (SELECT json FROM definition WHERE key = coalesce(conversation.definition, running.definition)),
    wake_at, wait_ms, for_person";

/// Joins the running turn of a conversation.
pub(crate) const RUNNING: &str = "LEFT JOIN running ON running.conversation = conversation.key
    AND running.version = conversation.version";

/// The kinds of entries.
pub(crate) const CHUNK: i64 = 0;
pub(crate) const RUN: i64 = 1;
pub(crate) const SEAL: i64 = 2;

/// Initial capacity for the JSON of a typical record, in bytes.
const JSON_ROOM: usize = 512;

/// Converts a count to SQLite's integer type. Counts on the wire are below 2^53; larger values saturate.
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| Error::IntegralValueOutOfRange(column, value))
}

/// A nullable count.
pub(crate) fn optional_count(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    let value: Option<i64> = row.get(column)?;
    let count = |value| u64::try_from(value).map_err(|_| Error::IntegralValueOutOfRange(column, value));
    value.map(count).transpose()
}

pub(crate) fn to_json(value: &impl Serialize) -> rusqlite::Result<String> {
    // Most records are a few hundred bytes: one allocation instead of several.
    let mut json = Vec::with_capacity(JSON_ROOM);
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| Error::ToSqlConversionFailure(error);
    serde_json::to_writer(&mut json, value).map_err(|error| failed(error.into()))?;
    String::from_utf8(json).map_err(|error| failed(error.into()))
}

pub(crate) fn from_json<'r, T: Deserialize<'r>>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<T> {
    let damaged =
        |error: serde_json::Error| Error::FromSqlConversionFailure(column, Type::Text, error.into());
    let mut json = Deserializer::from_slice(row.get_ref(column)?.as_bytes()?);
    // Arguments just within the depth limit on arrival are nested deeper inside their record.
    json.disable_recursion_limit();
    let value = T::deserialize(&mut json).map_err(damaged)?;
    json.end().map_err(damaged)?;
    Ok(value)
}

/// The head whose columns begin at `first`; `None` if none has been written yet.
pub(crate) fn head(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Head>> {
    if row.get::<_, Option<i64>>(first)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Head {
        created_at: Millis(count(row, first)?),
        last_activity_at: Millis(count(row, first + 1)?),
        title: row.get(first + 2)?,
        status: known(row, first + 3, &STATUS)?,
        model: row.get(first + 4)?,
        end: Cursor::from_value(count(row, first + 5)?),
        last_seq: count(row, first + 6)?,
        end_reason: row.get::<_, Option<String>>(first + 7)?.map(DoneReason::from),
    }))
}

/// The unsealed turn whose columns begin at `first`.
pub(crate) fn turn(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<TurnRecord>> {
    if row.get_ref(first)? == rusqlite::types::ValueRef::Null {
        return Ok(None);
    }
    Ok(Some(TurnRecord {
        snapshot: from_json::<Snapshot>(row, first)?,
        from: Cursor::from_value(count(row, first + 1)?),
        first_seq: count(row, first + 2)?,
        definition: from_json(row, first + 3)?,
        wait: wait(row, first + 4)?,
    }))
}

/// The wait whose columns `wake_at`, `wait_ms` and `for_person` begin at `first`.
pub(crate) fn wait(row: &Row<'_>, first: usize) -> rusqlite::Result<Wait> {
    let until = match row.get_ref(first)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(Moment { at: Millis(count(row, first)?), decided_ms: count(row, first + 1)? }),
    };
    Ok(match row.get(first + 2)? {
        true => Wait::Person { until },
        false => until.map_or(Wait::Now, Wait::Until),
    })
}

/// Stored as the index in this list: only append to it.
const STATUS: [ConversationStatus; 4] = [
    ConversationStatus::Active,
    ConversationStatus::Queued,
    ConversationStatus::Idle,
    ConversationStatus::Closed,
];

pub(crate) fn status_code(status: ConversationStatus) -> rusqlite::Result<i64> {
    code(status, &STATUS)
}

/// Stored as the index in this list: only append to it.
const ROLE: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];

pub(crate) fn role_code(role: Role) -> rusqlite::Result<i64> {
    code(role, &ROLE)
}

pub(crate) fn role(row: &Row<'_>, column: usize) -> rusqlite::Result<Role> {
    known(row, column, &ROLE)
}

/// Reads a chunk. Fails for a kind that a newer version added: a turn must not continue without it, and a copy of it
/// would lose its content.
pub(crate) fn chunk(row: &Row<'_>, column: usize) -> rusqlite::Result<Chunk> {
    match from_json(row, column)? {
        Chunk::Unknown => {
            let newer = "a chunk of an unknown kind, which a newer version of Everturn wrote";
            Err(Error::FromSqlConversionFailure(column, Type::Text, newer.into()))
        }
        chunk => Ok(chunk),
    }
}

/// The index of a value in the list of stored values.
fn code<T: Copy + PartialEq + Debug>(word: T, all: &[T]) -> rusqlite::Result<i64> {
    let unknown = || Error::ToSqlConversionFailure(format!("{word:?} cannot be kept").into());
    let place = all.iter().position(|known| *known == word).ok_or_else(unknown)?;
    i64::try_from(place).map_err(|error| Error::ToSqlConversionFailure(error.into()))
}

fn known<T: Copy>(row: &Row<'_>, column: usize, all: &[T]) -> rusqlite::Result<T> {
    let code: i64 = row.get(column)?;
    let place = usize::try_from(code).ok().and_then(|code| all.get(code));
    place.copied().ok_or(Error::IntegralValueOutOfRange(column, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places() {
        assert_eq!(STATUS.map(|status| status_code(status).unwrap()), [0, 1, 2, 3]);
        assert_eq!(ROLE.map(|role| role_code(role).unwrap()), [0, 1, 2, 3]);
    }

    #[test]
    fn what_is_unknown_has_no_code() {
        assert!(status_code(ConversationStatus::Unknown).is_err());
        assert!(role_code(Role::Unknown).is_err());
    }
}
