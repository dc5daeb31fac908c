//! What a late client reads from the journal.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, MemoryJournal, Page, Stored, StoredEvent, Version, Wait,
    Window, kernel::Millis,
};
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use serde_json::json;
use tokio::task::yield_now;

use crate::{
    client::{get, post},
    world::World,
};

/// A slow journal in memory that counts how often events are read.
#[derive(Default)]
struct Counting {
    inner: MemoryJournal,
    reads: AtomicUsize,
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
        self.inner.events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.inner.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.inner.conversations(page).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<(ConversationId, Wait)>, JournalError> {
        self.inner.unsealed(before).await
    }
}

#[tokio::test]
async fn a_late_client_reads_nothing_twice() {
    let journal = Arc::new(Counting::default());
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
