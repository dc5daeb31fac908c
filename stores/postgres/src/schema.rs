//! The tables: checked, created, and brought up to date.

use crate::{
    OpenError,
    error::{Failure, Place},
    session::Session,
};

/// The migration from each format to the next. A released one is never changed.
const MIGRATIONS: [&str; 1] = [include_str!("schema/1.sql")];

/// Leads to the conversations of one caller. Added within the latest format: older versions keep it up to date, and do not use
/// it.
const OF_CALLERS: &str = "CREATE INDEX IF NOT EXISTS of_caller
    ON conversation (split_part(id, '@', 2), last_activity_at DESC, id)
    WHERE id LIKE '%@%' AND id NOT LIKE 'ephemeral:%'";

/// The latest format.
const KNOWN: i64 = MIGRATIONS.len() as i64;

/// The oldest version of Postgres that is accepted, as Postgres counts them.
const OLDEST: i32 = 130_000;

/// Checks that a database can hold a journal.
pub(crate) async fn check(session: &Session, place: &Place) -> Result<(), OpenError> {
    let sql = "SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
        current_setting('server_encoding'), current_setting('transaction_read_only'),
        current_setting('fsync'), current_setting('full_page_writes')";
    let rows = session.query(sql, &[]).await.map_err(|failure| failed(place, &failure))?;
    let row = rows.first().ok_or_else(|| failed(place, &Failure::damaged("no settings")))?;
    let setting = |why: String| Err(OpenError::Setting { place: place.clone(), why });
    let [version, encoding, read_only, fsync, full_pages] =
        [1, 2, 3, 4, 5].map(|at| row.get::<_, String>(at));
    if row.get::<_, i32>(0) < OLDEST {
        return setting(format!("Postgres {version} is too old: upgrade it to 13 or newer"));
    }
    if encoding != "UTF8" {
        return setting(format!("its encoding is {encoding}: create a database with the encoding UTF8"));
    }
    if read_only != "off" {
        let why =
            "it is read-only, as a standby is, or by default_transaction_read_only: connect to the primary";
        return setting(why.to_owned());
    }
    if fsync != "on" || full_pages != "on" {
        tracing::warn!(
            "{place}: what it acknowledged may be lost in a power cut; its settings fsync and full_page_writes must be on"
        );
    }
    Ok(())
}

/// Brings the tables to the latest format. A foreign schema, or one of a newer version, is not changed. Nobody else may
/// do this at the same time.
pub(crate) async fn migrate(session: &Session, place: &Place) -> Result<(), OpenError> {
    let found = match format(session, place).await? {
        Some(found) => found,
        None => {
            // Its name is made of letters, digits and underscores.
            let sql = format!("CREATE SCHEMA {}", place.schema);
            session.execute(&sql).await.map_err(|failure| failed(place, &failure))?;
            0
        }
    };
    if found > KNOWN {
        return Err(OpenError::TooNew { place: place.clone(), found, known: KNOWN });
    }
    for (version, migration) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        let sql = format!("BEGIN; {migration}; UPDATE format SET version = {version}; COMMIT");
        session.execute(&sql).await.map_err(|failure| failed(place, &failure))?;
    }
    session.execute(OF_CALLERS).await.map_err(|failure| failed(place, &failure))
}

/// Checks that a schema has a journal of the latest format, without changing anything.
pub(crate) async fn check_written(session: &Session, place: &Place) -> Result<(), OpenError> {
    match format(session, place).await? {
        None | Some(0) => Err(OpenError::Empty { place: place.clone() }),
        Some(found) if found > KNOWN => Err(OpenError::TooNew { place: place.clone(), found, known: KNOWN }),
        Some(_) => Ok(()),
    }
}

/// Returns the format of a schema; 0 = it is still empty, `None` = it does not exist.
async fn format(session: &Session, place: &Place) -> Result<Option<i64>, OpenError> {
    let error = |failure: Failure| failed(place, &failure);
    let sql = "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = pg_namespace.oid),
        to_regclass(quote_ident(nspname) || '.format') IS NOT NULL
        FROM pg_namespace WHERE nspname = $1";
    let rows = session.query(sql, &[&place.schema]).await.map_err(error)?;
    let Some(row) = rows.first() else { return Ok(None) };
    match (row.get::<_, i64>(0), row.get::<_, bool>(1)) {
        (0, _) => Ok(Some(0)),
        (_, false) => Err(OpenError::Foreign { place: place.clone() }),
        (_, true) => {
            let rows = session.query("SELECT version FROM format", &[]).await.map_err(error)?;
            match rows.first() {
                Some(row) => {
                    let version = row.try_get(0).map_err(|_| OpenError::Foreign { place: place.clone() })?;
                    Ok(Some(version))
                }
                None => Err(OpenError::Foreign { place: place.clone() }),
            }
        }
    }
}

pub(crate) fn failed(place: &Place, failure: &Failure) -> OpenError {
    OpenError::Database { place: place.clone(), what: failure.text().to_owned() }
}
