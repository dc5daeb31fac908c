//! A turn that does not wait is kept until it is sealed, and not longer.

use everturn_orchestrator::{
    Commit, Cursor, Definition, Journal as _, StateStore as _, TurnRecord, Version, Wait,
    kernel::{Effects, Millis, Prompt, Settings, Turn},
};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::{ConversationId, TurnId, TurnMetrics};

use super::{open::reopened, support::numbered};

pub(crate) fn turn(id: &str, model: &str) -> impl FnOnce(Commit) -> Commit {
    let prompt = Prompt { text: "hi".to_owned(), images: Vec::new() };
    let turn = Turn::begin(TurnId::from(id), Settings::default(), prompt, Millis(3), &mut Effects::new());
    let record = TurnRecord {
        snapshot: turn.snapshot(),
        wait: Wait::Now,
        from: Cursor::from_value(1),
        first_seq: 1,
        definition: Definition::new(model),
    };
    |commit| commit.turn(record)
}

fn seal(commit: Commit) -> Commit {
    commit.seal(TurnMetrics::new(TurnId::from("t")))
}

/// The append of that number, with one thing more.
async fn add(journal: &SqliteJournal, id: &str, number: u64, more: impl FnOnce(Commit) -> Commit) {
    let commit = more(numbered(number, number.to_string()));
    journal.append(&id.into(), Version(number - 1), commit).await.unwrap();
}

async fn loaded(journal: &SqliteJournal, id: &str) -> Option<String> {
    let stored = journal.load(&id.into()).await.unwrap().unwrap();
    stored.turn.map(|turn| serde_json::to_value(&turn.snapshot).unwrap()["id"].as_str().unwrap().to_owned())
}

async fn listed(journal: &SqliteJournal) -> Vec<String> {
    let unsealed = journal.unsealed(Millis(u64::MAX)).await.unwrap();
    unsealed.into_iter().map(|turn| turn.id.to_string()).collect()
}

#[tokio::test]
async fn a_sealed_turn_is_gone_though_its_row_is_left_for_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    add(&journal, "a", 1, turn("a1", "m")).await;
    add(&journal, "b", 1, turn("b1", "m")).await;
    add(&journal, "a", 2, seal).await;
    assert_eq!((loaded(&journal, "a").await, listed(&journal).await), (None, vec!["b".to_owned()]));
    drop(journal);
    let journal = reopened(&path);
    assert_eq!((loaded(&journal, "a").await, listed(&journal).await), (None, vec!["b".to_owned()]));
    assert_eq!(loaded(&journal, "b").await.unwrap(), "b1");
}

#[tokio::test]
async fn the_next_turn_of_a_conversation_stays_as_others_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    add(&journal, "a", 1, turn("a1", "m")).await;
    add(&journal, "a", 2, seal).await;
    add(&journal, "b", 1, turn("b1", "m")).await;
    add(&journal, "a", 3, turn("a2", "m")).await;
    add(&journal, "b", 2, seal).await;
    add(&journal, "b", 3, seal).await;
    for name in ["c", "d"] {
        add(&journal, name, 1, turn(name, "m")).await;
    }
    assert_eq!(loaded(&journal, "a").await.unwrap(), "a2");
    assert_eq!(listed(&journal).await, ["a", "c", "d"]);
}

#[tokio::test]
async fn a_turn_whose_seal_is_refused_stays_as_others_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    add(&journal, "a", 1, turn("a1", "m")).await;
    // The place of its chunk is taken.
    journal.append(&"a".into(), Version(1), seal(numbered(1, "1".to_owned()))).await.unwrap_err();
    add(&journal, "b", 1, turn("b1", "m")).await;
    assert_eq!(loaded(&journal, "a").await.unwrap(), "a1");
    assert_eq!(listed(&journal).await, ["a", "b"]);
}

#[tokio::test]
async fn a_conversation_in_the_place_of_a_deleted_one_keeps_its_turn() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    add(&journal, "a", 1, turn("a1", "m")).await;
    add(&journal, "a", 2, seal).await;
    assert!(journal.delete(&"a".into()).await.unwrap());
    add(&journal, "b", 1, turn("b1", "m")).await;
    add(&journal, "c", 1, turn("c1", "m")).await;
    assert_eq!(listed(&journal).await, ["b", "c"]);
    assert_eq!(loaded(&journal, "b").await.unwrap(), "b1");
}

#[tokio::test]
async fn a_definition_that_was_removed_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    for n in 0..300 {
        let id = format!("{}{n}", ConversationId::EPHEMERAL);
        add(&journal, &id, 1, turn("t", &format!("m/{n}"))).await;
        add(&journal, &id, 2, seal).await;
    }
    assert_eq!(journal.drop_ephemeral(Millis(9)).await.unwrap().len(), 300);
    journal.write("between", "{}".to_owned()).await.unwrap();
    add(&journal, "a", 1, turn("a1", "m/299")).await;
    let stored = journal.load(&"a".into()).await.unwrap().unwrap();
    assert_eq!(stored.turn.unwrap().definition, Definition::new("m/299"));
}
