//! Closed and opened again, it is what it was.

use everturn_orchestrator::{
    Commit, Cursor, Definition, Journal, Moment, Page, StateStore as _, TurnRecord, Version, Wait, Window,
    kernel::{Effects, Millis, Prompt, Settings, Turn},
};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::{Chunk, ConversationId, Role, StepId, StoredChunk, TurnId, TurnMetrics, Value};
use futures_util::{FutureExt as _, future::join_all};

use super::support::{checked, head, numbered};

fn figures() -> TurnMetrics {
    TurnMetrics { duration_ms: Some(5), steps: 1, ..TurnMetrics::new(TurnId::from("t")) }
}

fn turn() -> TurnRecord {
    let prompt = Prompt { text: "hi".to_owned(), images: Vec::new() };
    let turn = Turn::begin(TurnId::from("u"), Settings::default(), prompt, Millis(3), &mut Effects::new());
    TurnRecord {
        snapshot: turn.snapshot(),
        wait: Wait::Until(Moment { at: Millis(9), decided_ms: 4 }),
        from: Cursor::from_value(1),
        first_seq: 1,
        definition: Definition::new("test/m"),
    }
}

async fn everything(journal: &SqliteJournal) -> String {
    let mut all = format!("{:?}", journal.unsealed(Millis(u64::MAX)).await.unwrap());
    for (id, _) in journal.conversations(Page::default()).await.unwrap() {
        all += &format!("\n{:?}", journal.load(&id).await.unwrap());
        all += &format!("\n{:?}", journal.chunks(&id, Window::default()).await.unwrap());
        all += &format!("\n{:?}", journal.events(&id, Cursor::default(), usize::MAX).await.unwrap());
        all += &format!("\n{:?}", journal.metrics(&id).await.unwrap());
    }
    all
}

#[tokio::test]
async fn it_is_the_same_after_it_was_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let before = {
        let journal = SqliteJournal::open(&path).unwrap();
        for name in ["a", "b", "c"] {
            let commit = numbered(1, name.repeat(3)).seal(figures()).turn(turn());
            journal.append(&ConversationId::from(name), Version(0), commit).await.unwrap();
        }
        everything(&journal).await
    };
    assert!(!directory.path().join("journal.db-wal").exists(), "it was tidied up");
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(everything(&journal).await, before);
    assert!(before.contains("ccc") && before.contains("TurnRecord"), "{before}");
}

#[tokio::test]
async fn turns_written_together_keep_their_own_definitions() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let turns: Vec<_> =
        (0..40).map(|n| (ConversationId::from(format!("c{n}")), format!("m/{}", n / 2 % 3))).collect();
    let appends = turns.iter().map(|(id, model)| {
        let record = TurnRecord { definition: Definition::new(model), ..turn() };
        journal.append(id, Version(0), numbered(1, "1".to_owned()).turn(record))
    });
    for appended in join_all(appends).await {
        appended.unwrap();
    }
    for (id, model) in &turns {
        let stored = journal.load(id).await.unwrap().unwrap();
        assert_eq!(&stored.turn.unwrap().definition.model, model);
    }
}

#[tokio::test]
async fn closing_waits_for_what_was_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let ids: Vec<_> = (0..40).map(|n| ConversationId::from(format!("c{n}"))).collect();
    {
        let journal = SqliteJournal::open(&path).unwrap();
        let appends = ids.iter().map(|id| journal.append(id, Version(0), numbered(1, "1".to_owned())));
        // Polled once: there is room for all of them, so all are accepted. None is waited for.
        let _ = join_all(appends).now_or_never();
    }
    let journal = SqliteJournal::open(&path).unwrap();
    for id in &ids {
        assert_eq!(checked(&journal, id).await, 1);
    }
}

#[tokio::test]
async fn arguments_as_deep_and_as_exact_as_they_came_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    // As deep as the parser of a provider's answer takes them.
    let deep = "[".repeat(127) + "0.30000000000000004,123456789.12345679" + &"]".repeat(127);
    let call = Chunk::ToolCall {
        tool_call_id: "call".to_owned(),
        tool_name: "tool".to_owned(),
        input: serde_json::from_str::<Value>(&deep).unwrap(),
        step_id: Some(StepId::from("t#0")),
        echo: None,
    };
    let given = StoredChunk { seq: 1, role: Role::Assistant, chunk: call.into(), supersedes: None };
    let id = ConversationId::from("c");
    journal.append(&id, Version(0), Commit::new(head(1)).chunk(given.clone())).await.unwrap();
    let chunks = journal.chunks(&id, Window::default()).await.unwrap();
    assert_eq!(*chunks[0], given);
}

#[tokio::test]
async fn what_all_conversations_share_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    {
        let journal = SqliteJournal::open(&path).unwrap();
        assert_eq!(journal.read("health").await.unwrap(), None);
        journal.write("health", "{}".to_owned()).await.unwrap();
        journal.write("other", "[]".to_owned()).await.unwrap();
        journal.write("health", "{\"models\":{}}".to_owned()).await.unwrap();
    }
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(journal.read("health").await.unwrap().as_deref(), Some("{\"models\":{}}"));
    assert_eq!(journal.read("other").await.unwrap().as_deref(), Some("[]"));
}
