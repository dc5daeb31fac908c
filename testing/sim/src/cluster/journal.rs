//! A node's journal: the shared one, which stamps the owner and announces appends.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, LiveEvent, NodeId, Page, Retention, Stored, StoredEvent,
    Unsealed, Version, Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use futures_util::FutureExt as _;

use super::{Shared, append::Append};

pub(super) struct NodeJournal {
    pub(super) node: NodeId,
    pub(super) shared: Arc<Shared>,
}

#[async_trait]
impl Journal for NodeJournal {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        let append = Append { node: self.node.clone(), id: id.clone(), expected, commit };
        let appended = append.send(&self.shared).await;
        // The node may have been frozen meanwhile.
        self.shared.reach(&self.node).await;
        appended
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.shared.answers(&self.node).await?;
        let state = self.shared.lock();
        let stored = self.shared.journal.load(id).now_or_never().expect("memory does not wait")?;
        Ok(stored.map(|stored| Stored { owner: state.owners.get(id).cloned(), ..stored }))
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.shared.answers(&self.node).await?;
        self.shared.journal.chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.shared.answers(&self.node).await?;
        self.shared.journal.events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.shared.answers(&self.node).await?;
        self.shared.journal.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.shared.answers(&self.node).await?;
        self.shared.journal.conversations(page).await
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        self.shared.answers(&self.node).await?;
        let mut state = self.shared.lock();
        let was = self.shared.listed(id);
        let renamed = self.shared.journal.rename(id, title).now_or_never().expect("memory does not wait");
        state.list_changed(id, &self.node, was.as_ref(), self.shared.listed(id));
        renamed
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        self.shared.answers(&self.node).await?;
        let mut state = self.shared.lock();
        let was = self.shared.listed(id);
        let removed = self.shared.journal.remove(id).now_or_never().expect("memory does not wait");
        state.owners.remove(id);
        state.publish(id, &self.node, &LiveEvent::Removed);
        state.list_changed(id, &self.node, was.as_ref(), None);
        removed
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        self.shared.answers(&self.node).await?;
        self.shared.journal.drop_ephemeral(idle_since).await
    }

    async fn drop_events(&self, retention: Retention) -> Result<usize, JournalError> {
        self.shared.answers(&self.node).await?;
        self.shared.journal.drop_events(retention).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.shared.answers(&self.node).await?;
        let state = self.shared.lock();
        let unsealed = self.shared.journal.unsealed(before).now_or_never().expect("memory does not wait")?;
        let with_owner = |turn: Unsealed| Unsealed { owner: state.owners.get(&turn.id).cloned(), ..turn };
        Ok(unsealed.into_iter().map(with_owner).collect())
    }
}
