//! The tables, and migrations from older formats.

use std::path::Path;

use rusqlite::Connection;

use crate::OpenError;

/// The migration from each format to the next. A released one is never changed.
const MIGRATIONS: [&str; 5] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
];

/// Columns that were added within the latest format: older versions read and write the file as if they were not there.
/// The next migration includes them.
const ADDED: &str = include_str!("schema/added.sql");

/// Leads to the conversations of one caller. Older versions keep it up to date, and do not use it.
const OF_CALLERS: &str = "CREATE INDEX IF NOT EXISTS of_caller
    ON conversation (substr(id, instr(id, '@') + 1), last_activity_at DESC, id)
    WHERE id GLOB '*@*' AND id NOT GLOB 'ephemeral:*'";

/// Leads to the conversations whose turn waits and has a definition. Older versions keep it up to date, and do not use it.
const OF_DEFINITIONS: &str = "CREATE INDEX IF NOT EXISTS of_definition
    ON conversation (definition) WHERE definition IS NOT NULL";

/// Gives a file that lacks [`ADDED`] these columns, without values, on this connection only.
const STAND_IN: &str = "PRAGMA temp_store = memory;
    CREATE TEMP VIEW conversation AS SELECT *, NULL AS end_reason, NULL AS end_version FROM main.conversation";

/// The latest format.
const KNOWN: i64 = MIGRATIONS.len() as i64;

/// "EvTn", set by the first migration.
pub(crate) const APPLICATION: i64 = 0x4576_546e;

/// Migrates a database to the latest format. A foreign one, or one from a newer version, is not changed.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let found = format(connection, path)?;
    for (version, migration) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        step(connection, version, migration).map_err(|error| OpenError::sqlite(path, &error))?;
    }
    add(connection).map_err(|error| OpenError::sqlite(path, &error))
}

fn add(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    if !has_added(&transaction)? {
        transaction.execute_batch(ADDED)?;
    }
    transaction.execute_batch(OF_CALLERS)?;
    transaction.execute_batch(OF_DEFINITIONS)?;
    transaction.commit()
}

fn has_added(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_table_info('conversation') WHERE name = 'end_version'";
    Ok(number(connection, sql)? == 1)
}

/// Checks that a database has the latest format, and prepares to read it without writing to it.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match format(connection, path)? {
        found if found < KNOWN => Err(OpenError::TooOld { path: path.to_owned(), found, known: KNOWN }),
        _ => stand_in(connection).map_err(|error| OpenError::sqlite(path, &error)),
    }
}

fn stand_in(connection: &Connection) -> rusqlite::Result<()> {
    match has_added(connection)? {
        true => Ok(()),
        false => connection.execute_batch(STAND_IN),
    }
}

/// The format of one of our databases; 0 = it is still empty.
fn format(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let found = number(connection, "SELECT * FROM pragma_user_version").map_err(failed)?;
    let application = number(connection, "SELECT * FROM pragma_application_id").map_err(failed)?;
    let tables = number(connection, "SELECT count(*) FROM sqlite_schema").map_err(failed)?;
    let path = path.to_owned();
    if application != APPLICATION && (found, tables) != (0, 0) {
        return Err(OpenError::Foreign { path, found: "a database of another program" });
    }
    match found {
        0..=KNOWN => Ok(found),
        _ => Err(OpenError::TooNew { path, found, known: KNOWN }),
    }
}

fn step(connection: &mut Connection, version: i64, migration: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(migration)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use everturn_ports::{Moment, Unsealed, Wait, kernel::Millis};

    use super::*;

    fn path() -> &'static Path {
        Path::new("/somewhere/journal.db")
    }

    #[test]
    fn an_empty_file_is_brought_to_the_latest_format() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, path()).unwrap();
        let version = number(&connection, "SELECT * FROM pragma_user_version").unwrap();
        assert_eq!(version, MIGRATIONS.len() as i64);
        connection.execute("INSERT INTO conversation (id, version) VALUES ('c', 1)", []).unwrap();
        migrate(&mut connection, path()).unwrap();
        assert_eq!(number(&connection, "SELECT count(*) FROM conversation").unwrap(), 1);
    }

    #[test]
    fn the_conversations_of_a_caller_are_found_without_reading_others() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, path()).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {}", crate::query::list_sql(true));
        let plan = |row: &rusqlite::Row<'_>| row.get::<_, String>(3);
        let mut statement = connection.prepare(&sql).unwrap();
        let plan = statement.query_map((1, "x", 5, "ann"), plan).unwrap();
        let plan: Vec<_> = plan.map(Result::unwrap).collect();
        assert!(plan.concat().contains("USING INDEX of_caller") && plan.len() == 1, "{plan:?}");
    }

    #[test]
    fn a_wait_of_the_first_format_keeps_how_long_it_was_decided_to_be() {
        let mut connection = Connection::open_in_memory().unwrap();
        step(&mut connection, 1, MIGRATIONS[0]).unwrap();
        let add = "INSERT INTO conversation (id, version, wake_at, turn) VALUES (?1, 1, ?2, ?3)";
        let backoff = include_str!("../../../kernel/tests/golden/v1/backoff.json");
        connection.execute(add, ("waits", 20_500, backoff)).unwrap();
        connection.execute(add, ("streams", None::<i64>, "{}")).unwrap();
        connection.execute(add, ("idle", None::<i64>, None::<&str>)).unwrap();
        migrate(&mut connection, path()).unwrap();
        let unsealed = crate::query::unsealed(&connection, Millis(u64::MAX)).unwrap();
        let wait = Wait::Until(Moment { at: Millis(20_500), decided_ms: 20_000 });
        assert_eq!(
            unsealed,
            [Unsealed::new("streams".into(), Wait::Now), Unsealed::new("waits".into(), wait)]
        );
    }

    #[test]
    fn a_step_that_fails_leaves_nothing_behind() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(step(&mut connection, 1, "CREATE TABLE a (b); CREATE TABLE a (b);").is_err());
        assert_eq!(number(&connection, "SELECT count(*) FROM sqlite_schema").unwrap(), 0);
        assert_eq!(number(&connection, "SELECT * FROM pragma_user_version").unwrap(), 0);
    }

    #[test]
    fn a_newer_format_is_refused_and_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, path()).unwrap();
        connection.pragma_update(None, "user_version", 9).unwrap();
        let refusal = migrate(&mut connection, path()).unwrap_err().to_string();
        assert!(refusal.contains("/somewhere/journal.db") && refusal.contains("format 9"), "{refusal}");
        assert!(refusal.contains("upgrade Everturn"), "{refusal}");
        assert_eq!(number(&connection, "SELECT * FROM pragma_user_version").unwrap(), 9);
    }

    #[test]
    fn a_database_of_another_program_is_refused_and_left_alone() {
        for theirs in ["CREATE TABLE song (title)", "PRAGMA user_version = 1"] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(theirs).unwrap();
            let refusal = migrate(&mut connection, path()).unwrap_err();
            assert!(matches!(refusal, OpenError::Foreign { .. }), "{refusal}");
            let ours = "SELECT count(*) FROM sqlite_schema WHERE name = 'conversation'";
            assert_eq!(number(&connection, ours).unwrap(), 0);
        }
    }
}
