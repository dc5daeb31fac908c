//! How records are stored in columns.

use everturn_ports::{
    Cursor, Head, Moment, TurnRecord, Wait,
    kernel::{Millis, Snapshot},
};
use everturn_store_rows::Unfit;
use everturn_wire::{Chunk, DoneReason, Role};
use rusqlite::{Error, Row, types::Type};
use serde::{Deserialize, Serialize};

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
    everturn_store_rows::to_json(value).map_err(unfit)
}

pub(crate) fn unfit(error: Unfit) -> Error {
    Error::ToSqlConversionFailure(error.into())
}

pub(crate) fn from_json<'r, T: Deserialize<'r>>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<T> {
    let json = row.get_ref(column)?.as_bytes()?;
    everturn_store_rows::from_json(json).map_err(|error| damaged(column, error.into()))
}

fn damaged(column: usize, error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, error)
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
        status: known(row, first + 3, everturn_store_rows::status)?,
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

pub(crate) fn role(row: &Row<'_>, column: usize) -> rusqlite::Result<Role> {
    known(row, column, everturn_store_rows::role)
}

pub(crate) fn chunk(row: &Row<'_>, column: usize) -> rusqlite::Result<Chunk> {
    let json = row.get_ref(column)?.as_bytes()?;
    everturn_store_rows::chunk(json).map_err(|error| damaged(column, error))
}

fn known<T>(row: &Row<'_>, column: usize, of: fn(i64) -> Option<T>) -> rusqlite::Result<T> {
    let code: i64 = row.get(column)?;
    of(code).ok_or(Error::IntegralValueOutOfRange(column, code))
}
