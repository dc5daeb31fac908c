//! Looking into a file beside its journal.

use std::fs;

use everturn_orchestrator::{Cursor, Window};
use everturn_store_sqlite::{OpenError, SqliteArchive, SqliteJournal};
use everturn_wire::ConversationId;

use super::support::{append, checked, event, head};

#[tokio::test]
async fn it_sees_what_is_committed_while_the_journal_is_open_and_after() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let id = ConversationId::from("c");
    let journal = SqliteJournal::open(&path).unwrap();
    append(&journal, &id, 1).await.unwrap();
    let archive = SqliteArchive::open(&path).unwrap();
    assert_eq!(archive.conversations().unwrap(), [(id.clone(), head(1))]);
    append(&journal, &id, 2).await.unwrap();
    assert_eq!(archive.load(&id).unwrap().unwrap().head, head(2));
    assert_eq!(archive.load(&"none".into()).unwrap().map(|stored| stored.head), None);
    drop(journal);
    append(&SqliteJournal::open(&path).unwrap(), &id, 3).await.unwrap();
    for archive in [archive, SqliteArchive::open(&path).unwrap()] {
        let window = Window { since_seq: Some(1), ..Window::default() };
        let seqs: Vec<u64> = archive.chunks(&id, window).unwrap().iter().map(|chunk| chunk.seq).collect();
        assert_eq!(seqs, [2, 3]);
        assert_eq!(archive.events(&id, Cursor::from_value(2), 9).unwrap(), [event(3)]);
    }
    assert_eq!(checked(&SqliteJournal::open(&path).unwrap(), &id).await, 3);
}

#[test]
fn what_is_no_journal_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    assert!(matches!(SqliteArchive::open(&path), Err(OpenError::Place { .. })));
    assert!(!path.exists(), "nothing is made");
    fs::write(&path, "").unwrap();
    let refusal = SqliteArchive::open(&path).unwrap_err().to_string();
    assert!(refusal.contains("older format (0"), "{refusal}");
    assert_eq!(fs::read(&path).unwrap(), b"", "nothing is brought up to date");
    fs::write(&path, "x".repeat(4096)).unwrap();
    assert!(matches!(SqliteArchive::open(&path), Err(OpenError::Foreign { .. })));
}
