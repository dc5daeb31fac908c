//! Usage in the state store: a document for each day, and a list of the days that there are.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::{
    Day,
    figures::{Row, Rows},
};
use crate::{JournalError, StateStore, state::change_document};

/// How many days are kept.
const KEPT_DAYS: u64 = 400;

/// How many processes a document remembers.
const MOST_WRITERS: usize = 64;

/// How many documents are read at once.
const AT_ONCE: usize = 16;

/// The name of the list of days.
const DAYS: &str = "usage/days";

#[derive(Default, Serialize, Deserialize)]
struct Document<'a> {
    /// The last batch of each process that this document has; the latest process is the last one.
    batches: Vec<(String, u64)>,
    rows: Vec<Row<'a>>,
}

fn name(day: Day) -> String {
    format!("usage/{day}")
}

fn unreadable(name: &str, error: &serde_json::Error) -> JournalError {
    JournalError::Storage(format!("the document {name} is not usage: {error}"))
}

/// Adds rows to a day's document, unless it has this batch of this process already.
pub(super) async fn add(
    store: &dyn StateStore,
    day: Day,
    more: &Rows,
    writer: &str,
    number: u64,
) -> Result<(), JournalError> {
    let name = name(day);
    change_document(store, &name, |json| {
        let known = json.map(serde_json::from_str::<Document<'_>>).transpose();
        let Document { mut batches, rows } =
            known.map_err(|error| unreadable(&name, &error))?.unwrap_or_default();
        let mine = batches.iter().position(|(by, _)| by == writer).map(|at| batches.remove(at));
        if mine.is_some_and(|(_, last)| last >= number) {
            return Ok(json.map(str::to_owned));
        }
        if batches.len() == MOST_WRITERS {
            batches.remove(0);
        }
        batches.push((writer.to_owned(), number));
        let mut rows = Rows::restored(rows);
        rows.add_all(more);
        let document = Document { batches, rows: rows.stored() };
        serde_json::to_string(&document).map(Some).map_err(|error| unreadable(&name, &error))
    })
    .await
}

/// Notes that there is a document for a day, and drops days that are too old.
pub(super) async fn list_day(store: &dyn StateStore, day: Day) -> Result<(), JournalError> {
    let oldest = day.before(KEPT_DAYS - 1);
    let dropped: Vec<Day> = days(store).await?.range(..oldest).copied().collect();
    for old in dropped {
        store.delete(&name(old)).await?;
    }
    change_document(store, DAYS, |json| {
        let mut days = parse_days(json)?;
        days.retain(|known| *known >= oldest);
        days.insert(day);
        let days: Vec<String> = days.iter().map(ToString::to_string).collect();
        serde_json::to_string(&days).map(Some).map_err(|error| unreadable(DAYS, &error))
    })
    .await
}

async fn days(store: &dyn StateStore) -> Result<BTreeSet<Day>, JournalError> {
    parse_days(store.read(DAYS).await?.as_deref())
}

fn parse_days(json: Option<&str>) -> Result<BTreeSet<Day>, JournalError> {
    let days: Vec<String> =
        json.map_or(Ok(Vec::new()), serde_json::from_str).map_err(|error| unreadable(DAYS, &error))?;
    Ok(days.iter().filter_map(|day| day.parse().ok()).collect())
}

/// Reads the rows of all days from one to another, both included.
pub(super) async fn read(
    store: &dyn StateStore,
    from: Day,
    to: Day,
) -> Result<Vec<(Day, Rows)>, JournalError> {
    let days = if from <= to { days(store).await?.range(from..=to).copied().collect() } else { Vec::new() };
    let read = |day: Day| async move {
        let json = store.read(&name(day)).await?.unwrap_or_default();
        if json.is_empty() {
            return Ok((day, Rows::default()));
        }
        let known: Document<'_> =
            serde_json::from_str(&json).map_err(|error| unreadable(&name(day), &error))?;
        Ok((day, Rows::restored(known.rows)))
    };
    stream::iter(days).map(read).buffered(AT_ONCE).try_collect().await
}
