//! What a late client reads from the journal.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, MemoryJournal, Page, Stored, StoredEvent, Unsealed, Version,
    Window, kernel::Millis,
};
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use serde_json::json;
use tokio::task::yield_now;

use crate::{
    ai_sdk::{CHAT, Shell, answers, ask, calls, chunks, submit, user},
    client::{get, post},
    world::World,
};

/// A slow journal in memory that returns at most `at_once` events per read, and counts the reads.
struct Counting {
    inner: MemoryJournal,
    at_once: usize,
    reads: AtomicUsize,
}

impl Counting {
    fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self { inner: MemoryJournal::new(), at_once, reads: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Journal for Counting {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        self.inner.append(id, expected, commit).await
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.inner.load(id).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.inner.chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        yield_now().await;
        self.inner.events(id, after, limit.min(self.at_once)).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.inner.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.inner.conversations(page).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.inner.unsealed(before).await
    }
}

#[tokio::test]
async fn a_late_client_reads_nothing_twice() {
    let journal = Counting::new(usize::MAX);
    let app = |orchestrator, _| router(orchestrator, CallLimits::default(), Metrics::none());
    let mut world = World::serve_from(journal.clone(), app).await;
    // Far more than is kept in memory, in many small turns.
    let turns = 100;
    for _ in 0..turns {
        let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
        world.call().await.answer(&"word ".repeat(1000));
        stream.text().await;
    }
    journal.reads.store(0, Ordering::Relaxed);
    let mut events = get(world.address, "/conversations/c/events?cursor=0").await;
    let (mut count, mut sealed) = (0, 0);
    while sealed < turns {
        let (_, data) = events.event().await;
        count += 1;
        sealed += usize::from(data.contains(r#""type":"turn-sealed""#));
    }
    let reads = journal.reads.load(Ordering::Relaxed);
    assert!(reads > 3 && reads <= count / 64 + 2, "{reads} reads for {count} events");
}

#[tokio::test]
async fn a_replay_continues_after_an_earlier_wait_for_people() {
    // One event at a time: the stream is at each of them for a moment with nothing more to tell.
    let journal = Counting::new(1);
    let mut world = World::serve_built(
        |builder| builder.journal(journal.clone()).tool(Shell),
        |orchestrator, _| router(orchestrator, CallLimits::default(), Metrics::none()),
    )
    .await;
    let asking = ask(&world, CHAT, submit(&json!([user("u", "hi")])));
    calls(&world.call().await, &["a"]);
    let id = chunks(asking.await.unwrap()).await[0]["messageId"].clone();
    let asking = ask(&world, CHAT, answers(&id, &[("a", true)]));
    let call = world.call().await;
    // Far more than is kept in memory, so that what came before is read from the journal.
    call.text(&"word ".repeat(100_000));
    calls(&call, &["c"]);
    chunks(asking.await.unwrap()).await;
    journal.reads.store(0, Ordering::Relaxed);
    let page = chunks(get(world.address, "/api/chat/my%20chat/stream").await).await;
    assert!(journal.reads.load(Ordering::Relaxed) > 5);
    let asked: Vec<_> = page.iter().filter(|chunk| chunk["type"] == "tool-approval-request").collect();
    assert_eq!(asked.len(), 2, "it ended at the first wait");
    assert_eq!(page.last().unwrap()["finishReason"], "tool-calls");
}
