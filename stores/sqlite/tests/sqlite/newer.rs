//! What a newer version wrote is neither lost nor passed over.

use everturn_orchestrator::{Journal, Window};
use everturn_store_sqlite::{SqliteArchive, SqliteJournal};
use everturn_wire::ConversationId;
use rusqlite::Connection;

use super::support::append;

const VIDEO: &str = r#"{"type":"video","url":"https://example.com/a.mp4"}"#;

#[tokio::test]
async fn a_chunk_of_a_newer_version_is_named_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let id = ConversationId::from("c1");
    let journal = SqliteJournal::open(&path).unwrap();
    append(&journal, &id, 1).await.unwrap();
    drop(journal);
    Connection::open(&path).unwrap().execute("UPDATE entry SET text = ?1 WHERE kind = 0", [VIDEO]).unwrap();

    let journal = SqliteJournal::open(&path).unwrap();
    let error = journal.chunks(&id, Window::default()).await.unwrap_err().to_string();
    assert!(error.contains("a newer version of Everturn wrote"), "{error}");
    append(&journal, &id, 2).await.unwrap();
    drop(journal);
    let copied = SqliteArchive::open(&path).unwrap().chunks(&id, Window::default());
    assert!(copied.is_err(), "{copied:?}");
    let connection = Connection::open(&path).unwrap();
    let kept: String = connection
        .query_one("SELECT text FROM entry WHERE kind = 0 AND place = 1", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, VIDEO);
}
