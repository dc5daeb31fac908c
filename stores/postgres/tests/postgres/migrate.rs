//! Schemas of other programs and versions.

use everturn_orchestrator::{Journal as _, Version};
use everturn_store_postgres::{OpenError, PostgresJournal};

use crate::support::{Server, id, numbered, texts};

#[tokio::test]
async fn a_newer_format_is_refused_and_left_alone() {
    let Some(server) = Server::start().await else { return };
    let options = server.options();
    drop(PostgresJournal::open(&options).await.unwrap());
    server.sql("UPDATE format SET version = 9, epoch = 5");
    let error = loop {
        match PostgresJournal::open(&options).await.unwrap_err() {
            // The first one is just going.
            OpenError::InUse { .. } => {}
            error => break error,
        }
    };
    assert!(matches!(error, OpenError::TooNew { found: 9, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("upgrade Everturn"), "{error}");
    assert_eq!(server.sql("SELECT version, epoch FROM format"), "9|5");
}

#[tokio::test]
async fn a_schema_with_other_tables_is_refused_and_left_alone() {
    let Some(server) = Server::start().await else { return };
    let options = server.options();
    server.server.sql("CREATE SCHEMA journal_1; CREATE TABLE journal_1.song (title text)");
    let error = PostgresJournal::open(&options).await.unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'journal_1'";
    assert_eq!(server.server.sql(tables), "1");
}

#[tokio::test]
async fn an_existing_schema_is_enough_for_a_user_without_other_rights() {
    let Some(server) = Server::start().await else { return };
    let mut options = server.options();
    server
        .server
        .sql("CREATE ROLE guest LOGIN PASSWORD 'guest-9'; CREATE SCHEMA journal_1 AUTHORIZATION guest");
    options.url = format!("postgres://guest:guest-9@{}/postgres", server.server.address());
    let journal = PostgresJournal::open(&options).await.unwrap();
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    assert_eq!(texts(&journal).await, ["one"]);
}
