//! Documents, and what is removed with their conversation.

use everturn_orchestrator::{Journal as _, StateStore as _, Take, Version, Window, kernel::Millis};
use everturn_store_postgres::PostgresJournal;

use crate::support::{Server, id, numbered, waiting};

#[tokio::test]
async fn documents_are_replaced_and_deleted() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    assert_eq!(journal.read("a").await, Ok(None));
    journal.write("a", "1".to_owned()).await.unwrap();
    journal.write("a", "\"\\u0000\"".to_owned()).await.unwrap();
    assert_eq!(journal.read("a").await, Ok(Some("\"\\u0000\"".to_owned())));
    journal.delete("a").await.unwrap();
    assert_eq!(journal.read("a").await, Ok(None));
}

#[tokio::test]
async fn a_removed_conversation_leaves_nothing() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    for name in ["c", "ca"] {
        let mut turn = waiting(5);
        turn.definition.model = format!("test/{name}");
        journal.append(&name.into(), Version(0), numbered(1, "text").turn(turn)).await.unwrap();
        journal.write(&format!("conversation/{name}/retry"), "1".to_owned()).await.unwrap();
    }
    journal.append(&id(), Version(1), numbered(2, "end")).await.unwrap();
    assert!(journal.remove(&id()).await.unwrap());
    assert_eq!(journal.read("conversation/c/retry").await, Ok(None));
    assert_eq!(journal.read("conversation/ca/retry").await, Ok(Some("1".to_owned())));
    assert_eq!(server.sql("SELECT count(*), count(DISTINCT conversation) FROM entry"), "2|1");
    assert_eq!(
        server.sql("SELECT json::json->>'model' FROM definition"),
        "test/ca",
        "what its turn was to do"
    );
}

#[tokio::test]
async fn idle_ephemeral_conversations_are_removed_with_what_only_they_used() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    for n in 0..300 {
        let mut turn = waiting(5);
        turn.definition.model = format!("test/{n}");
        let id = format!("ephemeral:{n}");
        journal.append(&id.as_str().into(), Version(0), numbered(1, "text").turn(turn)).await.unwrap();
        // The last one still waits, and the one before it was active later.
        let time = if n == 298 { 2 } else { 1 };
        if n < 299 {
            journal.append(&id.as_str().into(), Version(1), numbered(2, "end")).await.unwrap();
            server.sql(&format!("UPDATE conversation SET last_activity_at = {time} WHERE id = '{id}'"));
        }
        journal.write(&format!("conversation/{id}/retry"), "1".to_owned()).await.unwrap();
    }
    journal.append(&id(), Version(0), numbered(1, "text")).await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM definition"), "300");
    assert_eq!(journal.drop_ephemeral(Millis(2)).await.unwrap().len(), 298);
    let left = "SELECT string_agg(id, ' ' ORDER BY id) FROM conversation";
    assert_eq!(server.sql(left), "c ephemeral:298 ephemeral:299");
    assert_eq!(server.sql("SELECT count(*) FROM state"), "2");
    assert_eq!(server.sql("SELECT count(*) FROM definition"), "1", "only the last one waits");
    let stored = journal.load(&"ephemeral:299".into()).await.unwrap().unwrap();
    assert_eq!(stored.turn.unwrap().definition.model, "test/299");
    // A definition that was deleted is stored again.
    let mut turn = waiting(5);
    turn.definition.model = "test/297".to_owned();
    journal.append(&id(), Version(1), numbered(2, "text").turn(turn.clone())).await.unwrap();
    assert_eq!(journal.load(&id()).await.unwrap().unwrap().turn, Some(turn));
    assert_eq!(journal.drop_ephemeral(Millis(u64::MAX)).await, Ok(vec!["ephemeral:298".into()]));
}

/// In answers of so many chunks, and of so many bytes.
#[tokio::test]
async fn a_long_history_is_read_whole() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    let mut commit = numbered(1, "text");
    for number in 2..=150 {
        let text = if number % 20 == 0 { "x".repeat(1 << 20) } else { number.to_string() };
        commit.chunks.extend(numbered(number, &text).chunks);
    }
    let chunks = commit.chunks.clone();
    journal.append(&id(), Version(0), commit).await.unwrap();
    for take in [Take::Oldest, Take::Newest] {
        let all = journal.chunks(&id(), Window { take, ..Window::default() }).await.unwrap();
        assert!(all == chunks, "{take:?}: {}", all.len());
        let some = Window { take, limit: Some(100), ..Window::default() };
        let some = journal.chunks(&id(), some).await.unwrap();
        let expected = if take == Take::Oldest { &chunks[..100] } else { &chunks[50..] };
        assert!(some == expected, "{take:?}: {}", some.len());
    }
}
