//! The journal of a world. It outlives the processes, which end before or after its appends.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, MemoryJournal, Page, Stored, StoredEvent, Unsealed, Version,
    Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use tokio::task::yield_now;

use super::{
    book::Book,
    fuse::{Fuse, Point},
    phase,
    plan::Outage,
};

/// The journal as used by one process.
pub(super) struct Durable {
    pub(super) kept: Arc<MemoryJournal>,
    pub(super) book: Book,
    pub(super) fuse: Fuse,
    pub(super) outage: Option<Outage>,
    pub(super) appends: AtomicU32,
}

impl Durable {
    /// Takes a while like a disk, so that others run meanwhile.
    async fn takes_a_while(&self) {
        for _ in 0..self.book.below(4) {
            yield_now().await;
        }
    }
}

#[async_trait]
impl Journal for Durable {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        self.takes_a_while().await;
        let number = self.appends.fetch_add(1, Ordering::Relaxed);
        let fails = |outage: &Outage| (outage.from..outage.from + outage.appends).contains(&number);
        if let Some(outage) = self.outage.filter(fails) {
            self.book.failed(id);
            self.book.pages().tally.meets("the journal fails", phase::of(&self.kept, id));
            if outage.landed {
                self.kept.append(id, expected, commit.clone()).await?;
                self.book.saved(id, &commit);
                return Err(JournalError::Unknown("the answer is lost".to_owned()));
            }
            return Err(JournalError::Storage("no space is left".to_owned()));
        }
        self.fuse.pass(Point::BeforeAppend).await;
        let version = self.kept.append(id, expected, commit.clone()).await?;
        self.book.saved(id, &commit);
        self.fuse.pass(Point::AfterAppend).await;
        if phase::of(&self.kept, id) == Some(phase::ASKED) {
            self.fuse.pass(Point::Asked).await;
        }
        self.takes_a_while().await;
        Ok(version)
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.takes_a_while().await;
        self.kept.load(id).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.kept.chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.takes_a_while().await;
        self.kept.events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.kept.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.kept.conversations(page).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        self.kept.drop_ephemeral(idle_since).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.kept.unsealed(before).await
    }
}
