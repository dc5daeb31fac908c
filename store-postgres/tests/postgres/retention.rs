//! What is deleted after a time, and what is not.

use everturn_orchestrator::{Commit, Cursor, Journal as _, Retention, Version, Window, kernel::Millis};
use everturn_store_postgres::PostgresJournal;
use everturn_wire::{ConversationId, TurnId, TurnMetrics};

use crate::support::{Server, head, numbered};

/// Adds `turns` sealed turns, the nth sealed at n with the nth event as its last, and one event more.
async fn talk(journal: &PostgresJournal, id: &ConversationId, turns: u64) {
    for number in 1..=turns {
        let commit = numbered(number, &number.to_string()).seal(figures(&number.to_string()));
        journal.append(id, Version(number - 1), commit).await.unwrap();
    }
    journal.append(id, Version(turns), numbered(turns + 1, "more")).await.unwrap();
}

fn figures(turn: &str) -> TurnMetrics {
    TurnMetrics { steps: 1, ..TurnMetrics::new(TurnId::from(turn)) }
}

async fn left(journal: &PostgresJournal, id: &ConversationId) -> Vec<u64> {
    let events = journal.events(id, Cursor::default(), usize::MAX).await.unwrap();
    events.iter().map(|event| event.end.value()).collect()
}

#[tokio::test]
async fn events_of_old_turns_are_deleted_and_nothing_else() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    let (id, short) = (ConversationId::from("c"), ConversationId::from("short"));
    talk(&journal, &id, 6).await;
    talk(&journal, &short, 1).await;

    assert_eq!(journal.drop_events(Retention::default()).await.unwrap(), 0, "the default keeps all");
    assert_eq!(left(&journal, &id).await, [1, 2, 3, 4, 5, 6, 7]);
    let newest = Retention { newest_turns: Some(4), ..Retention::default() };
    assert_eq!(journal.drop_events(newest).await.unwrap(), 2);
    assert_eq!(left(&journal, &id).await, [3, 4, 5, 6, 7]);
    assert_eq!(left(&journal, &short).await, [1, 2]);
    let recent = Retention { sealed_before: Some(Millis(5)), ..Retention::default() };
    assert_eq!(journal.drop_events(recent).await.unwrap(), 3);
    assert_eq!(left(&journal, &id).await, [5, 6, 7]);
    let none = Retention { newest_turns: Some(0), sealed_before: None };
    assert_eq!(journal.drop_events(none).await.unwrap(), 2);
    assert_eq!(left(&journal, &id).await, [7], "what is in no sealed turn stays");

    assert_eq!(journal.chunks(&id, Window::default()).await.unwrap().len(), 7);
    assert_eq!(journal.metrics(&id).await.unwrap().len(), 6);
    // A turn that is sealed without an event of its own ends where the last run ends.
    let sealed = Commit { chunks: Vec::new(), ..Commit::new(head(8)) }.seal(figures("8"));
    journal.append(&id, Version(7), sealed).await.unwrap();
    assert_eq!(journal.drop_events(none).await.unwrap(), 1);
}

#[tokio::test]
async fn all_conversations_and_all_events_are_reached() {
    const MANY: u64 = 5_000;
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    for n in 0..130 {
        talk(&journal, &ConversationId::from(format!("c{n}").as_str()), 1).await;
    }
    // Events with gaps between them are rows of their own.
    let long = ConversationId::from("long");
    let events = (1..=MANY).map(|n| numbered(2 * n, "x").events.remove(0)).collect();
    let commit = Commit { events, ..Commit::new(head(2 * MANY)) }.seal(figures("1"));
    journal.append(&long, Version(0), commit).await.unwrap();
    let none = Retention { newest_turns: Some(0), sealed_before: None };
    assert_eq!(journal.drop_events(none).await.unwrap() as u64, MANY + 130);
    assert!(left(&journal, &long).await.is_empty());
    assert_eq!(server.sql("SELECT count(*) FROM entry WHERE kind = 1"), "130");
}
