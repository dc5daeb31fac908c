//! How records are read from columns.

use everturn_ports::{
    Cursor, Head, Moment, TurnRecord, Wait,
    kernel::{Millis, Snapshot},
};
use everturn_store_rows::{from_json, status};
use everturn_wire::DoneReason;
use serde::Deserialize;
use tokio_postgres::{Row, types::FromSql};

use crate::{error::Failure, text::unescape};

/// The value of a column.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, Failure> {
    row.try_get(column).map_err(Failure::damaged)
}

pub(crate) fn count(row: &Row, column: usize) -> Result<u64, Failure> {
    u64::try_from(get::<i64>(row, column)?).map_err(Failure::damaged)
}

/// A nullable count.
pub(crate) fn optional_count(row: &Row, column: usize) -> Result<Option<u64>, Failure> {
    let value: Option<i64> = get(row, column)?;
    value.map(u64::try_from).transpose().map_err(Failure::damaged)
}

pub(crate) fn json<'r, T: Deserialize<'r>>(row: &'r Row, column: usize) -> Result<T, Failure> {
    from_json(get::<&str>(row, column)?.as_bytes()).map_err(Failure::damaged)
}

pub(crate) fn head(row: &Row, first: usize) -> Result<Head, Failure> {
    let text = |at| get::<Option<&str>>(row, first + at).map(|text| text.map(unescape));
    let code = i64::from(get::<i16>(row, first + 3)?);
    Ok(Head {
        created_at: Millis(count(row, first)?),
        last_activity_at: Millis(count(row, first + 1)?),
        title: text(2)?.unwrap_or_default(),
        status: status(code).ok_or_else(|| Failure::damaged(format!("status {code}")))?,
        end_reason: text(4)?.map(DoneReason::from),
        model: text(5)?,
        end: Cursor::from_value(count(row, first + 6)?),
        last_seq: count(row, first + 7)?,
    })
}

/// The unsealed turn in the columns `turn`, `turn_begins`, `turn_seq`, the definition's `json`, `wake_at`, `wait_ms` and
/// `for_person`.
pub(crate) fn turn(row: &Row, first: usize) -> Result<Option<TurnRecord>, Failure> {
    if get::<Option<&str>>(row, first)?.is_none() {
        return Ok(None);
    }
    Ok(Some(TurnRecord {
        snapshot: json::<Snapshot>(row, first)?,
        from: Cursor::from_value(count(row, first + 1)?),
        first_seq: count(row, first + 2)?,
        definition: json(row, first + 3)?,
        wait: wait(row, first + 4)?,
    }))
}

/// The wait in the columns `wake_at`, `wait_ms` and `for_person`.
pub(crate) fn wait(row: &Row, first: usize) -> Result<Wait, Failure> {
    let moment = |at| Ok::<_, Failure>(Moment { at: Millis(at), decided_ms: count(row, first + 1)? });
    let until = optional_count(row, first)?.map(moment).transpose()?;
    Ok(match get(row, first + 2)? {
        true => Wait::Person { until },
        false => until.map_or(Wait::Now, Wait::Until),
    })
}
