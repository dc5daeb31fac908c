//! What is let go, and what is not.

use everturn_orchestrator::{
    Commit, Cursor, Journal as _, JournalError, Retention, StateStore, Version, Window, kernel::Millis,
};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::{ConversationId, TurnId, TurnMetrics};

use super::{
    running::turn,
    support::{append, checked, event, head, numbered},
};

/// A conversation of `turns` sealed turns, the nth sealed at n with the nth event as its last, and one event more.
async fn talk(journal: &SqliteJournal, id: &ConversationId, turns: u64) {
    for number in 1..=turns {
        let commit = numbered(number, number.to_string()).seal(figures(&number.to_string()));
        journal.append(id, Version(number - 1), commit).await.unwrap();
    }
    append(journal, id, turns + 1).await.unwrap();
}

fn figures(turn: &str) -> TurnMetrics {
    TurnMetrics { steps: 1, ..TurnMetrics::new(TurnId::from(turn)) }
}

async fn left(journal: &SqliteJournal, id: &ConversationId) -> Vec<u64> {
    let events = journal.events(id, Cursor::default(), usize::MAX).await.unwrap();
    events.iter().map(|event| event.end.value()).collect()
}

#[tokio::test]
async fn events_of_old_turns_are_let_go_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
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
    append(&journal, &id, 8).await.unwrap();
}

#[tokio::test]
async fn all_conversations_are_reached() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    for n in 0..150 {
        talk(&journal, &ConversationId::from(format!("c{n}")), 1).await;
    }
    let none = Retention { newest_turns: Some(0), sealed_before: None };
    assert_eq!(journal.drop_events(none).await.unwrap(), 150);
}

#[tokio::test]
async fn a_turn_of_very_many_events_goes_part_by_part() {
    const MANY: u64 = 10_000;
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let (first, second) = (ConversationId::from("1"), ConversationId::from("2"));
    for id in [&first, &second] {
        let events = (1..=MANY).map(event).collect();
        let commit = Commit { events, ..Commit::new(head(MANY)) }.seal(figures("1"));
        journal.append(id, Version(0), commit).await.unwrap();
    }
    let none = Retention { newest_turns: Some(0), sealed_before: None };
    assert_eq!(journal.drop_events(none).await.unwrap() as u64, 2 * MANY);
    assert!(left(&journal, &first).await.is_empty() && left(&journal, &second).await.is_empty());
}

#[tokio::test]
async fn the_documents_of_a_deleted_conversation_go_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    talk(&journal, &ConversationId::from("c"), 1).await;
    let of_it = ["conversation/c/retry-settings", "conversation/c/more"];
    let of_others = ["health", "conversation/c.2/retry-settings", "conversation/cc/x", "conversation/C/x"];
    for name in of_it.iter().chain(&of_others) {
        journal.write(name, format!("{{\"of\":\"{name}\"}}")).await.unwrap();
    }
    assert!(journal.delete(&"c".into()).await.unwrap());
    for name in of_it {
        assert_eq!(journal.read(name).await.unwrap(), None, "{name}");
    }
    for name in of_others {
        assert!(journal.read(name).await.unwrap().is_some(), "{name}");
        StateStore::delete(&journal, name).await.unwrap();
        assert_eq!(journal.read(name).await.unwrap(), None, "{name}");
        StateStore::delete(&journal, name).await.unwrap();
    }
}

#[tokio::test]
async fn a_deleted_conversation_is_gone_and_may_begin_anew() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let (id, other) = (ConversationId::from("c"), ConversationId::from("other"));
    talk(&journal, &id, 2).await;
    append(&journal, &other, 1).await.unwrap();

    assert!(journal.delete(&id).await.unwrap());
    assert!(!journal.delete(&id).await.unwrap(), "there is none any more");
    assert_eq!(checked(&journal, &id).await, 0);
    assert!(journal.metrics(&id).await.unwrap().is_empty());
    let stale = append(&journal, &id, 4).await.unwrap_err();
    assert!(matches!(stale, JournalError::Stale { found: Version(0), .. }), "{stale}");
    let begun = append(&journal, &id, 1).await.unwrap();
    assert_eq!(journal.load(&id).await.unwrap().unwrap().version, begun);
    assert_eq!(journal.chunks(&id, Window::default()).await.unwrap().len(), 1);
    assert_eq!(checked(&journal, &other).await, 1);
}

#[tokio::test]
async fn ephemeral_conversations_are_in_no_list_and_go_in_parts() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let named = |name: String| ConversationId::from(name);
    let id = |n: u64| named(format!("{}{n}", ConversationId::EPHEMERAL));
    for n in 0..150 {
        append(&journal, &id(n), 1).await.unwrap();
    }
    append(&journal, &id(150), 1).await.unwrap();
    append(&journal, &id(150), 2).await.unwrap();
    for near in ["ephemeral", "ephemeral;", "ephemera", "c"] {
        append(&journal, &named(near.to_owned()), 1).await.unwrap();
    }
    let listed = journal.conversations(Default::default()).await.unwrap();
    assert_eq!(listed.len(), 4);
    let first = head(1).last_activity_at;
    assert_eq!(journal.drop_ephemeral(first).await.unwrap(), [], "as old as what is kept");
    assert_eq!(journal.drop_ephemeral(Millis(first.0 + 1)).await.unwrap().len(), 150);
    assert!(journal.load(&id(0)).await.unwrap().is_none());
    assert!(journal.load(&id(150)).await.unwrap().is_some());
    assert_eq!(journal.conversations(Default::default()).await.unwrap(), listed);
}

/// Writes conversations of this many bytes each.
async fn fill(journal: &SqliteJournal, ids: &[String], bytes: usize) {
    for id in ids {
        let commit = numbered(1, "x".repeat(bytes)).seal(figures("1"));
        journal.append(&ConversationId::from(id.as_str()), Version(0), commit).await.unwrap();
    }
}

#[tokio::test]
async fn deleted_space_is_given_back_while_the_journal_is_open() {
    const EACH: usize = 1 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let ids: Vec<String> = (0..48).map(|number| format!("c{number}")).collect();
    // The first time, the file is written anew; then it shrinks in steps.
    for round in ["first", "second"] {
        fill(&journal, &ids[8..], EACH).await;
        if round == "first" {
            fill(&journal, &ids[..8], EACH).await;
        }
        assert_eq!(journal.give_back().await.unwrap(), 0, "{round}: nothing is free");
        for id in &ids[8..20] {
            assert!(journal.remove(&ConversationId::from(id.as_str())).await.unwrap());
        }
        assert_eq!(journal.give_back().await.unwrap(), 0, "{round}: too little to be worth it");
        for id in &ids[20..] {
            assert!(journal.remove(&ConversationId::from(id.as_str())).await.unwrap());
        }
        let given = journal.give_back().await.unwrap();
        assert!(given >= 40 * EACH as u64, "{round}: {given}");
        let length = path.metadata().unwrap().len();
        assert!(length < 10 * EACH as u64, "{round}: {length}");
        let kept = journal.chunks(&ConversationId::from("c3"), Window::default()).await.unwrap();
        assert_eq!(kept.len(), 1, "{round}");
    }
    drop(journal);
    // A file of this size is checked for damage when it is opened.
    SqliteJournal::open(&path).unwrap();
}

/// Also what is on pages of its own, and what only its turns used.
#[tokio::test]
async fn nothing_of_a_deleted_conversation_can_be_read_in_the_file() {
    const SECRET: &str = "not for others";
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let id = ConversationId::from("c");
    append(&journal, &"other".into(), 1).await.unwrap();
    let running = numbered(1, SECRET.repeat(10_000));
    journal.append(&id, Version(0), turn("t", SECRET)(running)).await.unwrap();
    let end = numbered(2, SECRET.to_owned()).seal(figures("t"));
    journal.append(&id, Version(1), end).await.unwrap();
    assert!(journal.remove(&id).await.unwrap());
    assert_eq!(checked(&journal, &"other".into()).await, 1);
    drop(journal);
    let file = std::fs::read(directory.path().join("journal.db")).unwrap();
    let found = file.windows(SECRET.len()).filter(|part| *part == SECRET.as_bytes()).count();
    assert_eq!(found, 0, "times in the file");
}
