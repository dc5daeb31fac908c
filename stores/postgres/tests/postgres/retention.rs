//! What is deleted after a time, and what is not.

use everturn_orchestrator::{Commit, Cursor, Journal as _, Retention, Version, Window};
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

/// The contract suite tests the rest.
#[tokio::test]
async fn a_turn_without_an_event_of_its_own_ends_where_the_last_run_of_events_ends() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    let id = ConversationId::from("c");
    talk(&journal, &id, 6).await;
    let sealed = Commit { chunks: Vec::new(), ..Commit::new(head(8)) }.seal(figures("8"));
    journal.append(&id, Version(7), sealed).await.unwrap();
    let none = Retention { newest_turns: Some(0), sealed_before: None };
    assert_eq!(journal.drop_events(none).await.unwrap(), 7);
    assert_eq!(journal.chunks(&id, Window::default()).await.unwrap().len(), 7);
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
    assert!(journal.events(&long, Cursor::default(), 1).await.unwrap().is_empty());
    assert_eq!(server.sql("SELECT count(*) FROM entry WHERE kind = 1"), "130");
}
