//! Files that were written by the program of each earlier format, killed while one turn waited and another streamed.
//!
//! `file/format-N.db` has four conversations: `talks` was answered after a failure, `rolls` after a tool call, `waits` is in a
//! wait of about 45 s, and `streams` has a piece of an answer. A file is never changed; a new format adds one of the format before.

use std::{path::Path, sync::Arc};

use everturn_orchestrator::{
    Cursor, Journal as _, Orchestrator, Page, SubscribeFrom, Window,
    kernel::{FinishReason, Millis, Provider, Request, StreamEvent},
};
use everturn_store_sqlite::{SqliteArchive, SqliteJournal};
use everturn_wire::Chunk;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};

use super::open::reopened;

/// Each file, and how long its wait was decided to be, in milliseconds: later formats have jitter.
const FILES: [(&[u8], u64); 4] = [
    (include_bytes!("file/format-1.db"), 45_000),
    (include_bytes!("file/format-2.db"), 45_000),
    (include_bytes!("file/format-3.db"), 45_461),
    (include_bytes!("file/format-4.db"), 42_104),
];

/// Answers everything at once.
struct Answers;

impl Provider for Answers {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let events = [StreamEvent::Text("At last.".to_owned()), StreamEvent::Finished(FinishReason::Stop)];
        stream::iter(events).boxed()
    }
}

async fn said(orchestrator: &Orchestrator, id: &str) -> Vec<String> {
    let history = orchestrator.history(&id.into(), Window::default()).await.unwrap();
    let line = |chunk: &Chunk| match chunk {
        Chunk::Text { text } => text.clone(),
        Chunk::ToolCall { tool_name, .. } => format!("call {tool_name}"),
        Chunk::ToolResult { .. } => "result".to_owned(),
        other => format!("{other:?}"),
    };
    history.chunks.iter().map(|stored| line(&stored.chunk)).collect()
}

/// The types of all events of a conversation, those that follow each other once, up to the seal of its last turn.
async fn told(orchestrator: &Orchestrator, id: &str) -> Vec<String> {
    let from = SubscribeFrom::After(Cursor::default());
    let mut subscription = orchestrator.subscribe(&id.into(), from, true).await.unwrap();
    let mut types = Vec::new();
    loop {
        let frame = subscription.next().await.unwrap();
        let event: serde_json::Value = serde_json::from_slice(&frame.event()).unwrap();
        types.push(event["type"].as_str().unwrap().to_owned());
        if frame.ends_turn() {
            types.dedup();
            return types;
        }
    }
}

/// Opens a file, checks what it had, and lets its turns go on.
async fn goes_on(path: &Path, decided_ms: u64) {
    let journal = Arc::new(SqliteJournal::open(path).unwrap());
    let waits = journal.load(&"waits".into()).await.unwrap().unwrap().turn.unwrap().wait.until().unwrap();
    assert_eq!(waits.decided_ms, decided_ms);
    assert_eq!(journal.unsealed(Millis(u64::MAX)).await.unwrap().len(), 2);

    let builder = Orchestrator::builder().journal(journal.clone()).state(journal.clone());
    let orchestrator = builder.model("sim", "model", Arc::new(Answers)).build();
    let (listed, _) = orchestrator.conversations(Page::default()).await.unwrap();
    let mut names: Vec<_> = listed.iter().map(|listed| listed.id.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["rolls", "streams", "talks", "waits"]);
    assert!(listed.iter().all(|listed| listed.title == listed.id.as_str()), "{listed:?}");
    assert_eq!(said(&orchestrator, "talks").await, ["talks", "One answer."]);
    assert_eq!(said(&orchestrator, "rolls").await, ["rolls", "call roll_dice", "result", "One answer."]);
    let events = told(&orchestrator, "talks").await;
    assert!(events.iter().any(|kind| kind == "provider-retry"), "{events:?}");

    // Both are due: the wait ended long ago.
    assert_eq!(orchestrator.resume().await.unwrap(), 2);
    for id in ["waits", "streams"] {
        let events = told(&orchestrator, id).await;
        assert_eq!(events.last().map(String::as_str), Some("turn-sealed"), "{id}: {events:?}");
        assert_eq!(said(&orchestrator, id).await, [id, "At last."]);
    }
    assert_eq!(journal.unsealed(Millis(u64::MAX)).await.unwrap(), []);
}

/// Checks how many chunks a file has now.
async fn has_grown(path: &Path) {
    let journal = reopened(path);
    for (id, chunks) in [("talks", 2), ("rolls", 4), ("waits", 2), ("streams", 2)] {
        let found = journal.chunks(&id.into(), Window::default()).await.unwrap();
        assert_eq!(found.len(), chunks, "{id}");
    }
}

/// Runs a process: its tasks end with it.
fn process(does: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(does);
}

fn is_kept(format: i64, file: &[u8], decided_ms: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    std::fs::write(&path, file).unwrap();
    // Who only reads says that it is older, and changes nothing.
    let refusal = SqliteArchive::open(&path).map(drop).unwrap_err().to_string();
    assert!(refusal.contains(&format!("older format ({format};")), "{refusal}");
    assert_eq!(std::fs::read(&path).unwrap(), file);
    process(goes_on(&path, decided_ms));
    process(has_grown(&path));
}

#[test]
fn a_file_of_each_earlier_format_opens_and_its_turns_go_on() {
    (1..).zip(FILES).for_each(|(format, (file, decided_ms))| is_kept(format, file, decided_ms));
}
