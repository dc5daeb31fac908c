//! A node's journal: the shared one, which stamps the owner and announces appends.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_orchestrator::{
    Appended, Commit, Cursor, Head, Journal, JournalError, LiveEvent, NodeId, Page, Stored, StoredEvent,
    Unsealed, Version, Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use futures_util::FutureExt as _;

use super::Shared;

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
        self.shared.reach(&self.node).await;
        // One lock for the append and its announcement, so that they are announced in order.
        let mut state = self.shared.lock();
        let was = self.shared.listed(id);
        let appended = self.shared.journal.append(id, expected, commit.clone()).now_or_never();
        let appended = appended.expect("memory does not wait");
        match &appended {
            Ok(version) => {
                state.owners.insert(id.clone(), self.node.clone());
                let unknown = state.noise.unknown;
                let is_lost = state.random.f64() < unknown;
                if let Some(witness) = &state.witness {
                    witness(&self.node, id, &commit, is_lost);
                }
                let event = Appended {
                    previous: expected,
                    version: *version,
                    owner: self.node.clone(),
                    commit: Box::new(commit),
                };
                state.publish(id, &self.node, &LiveEvent::Appended(event));
                state.list_changed(id, &self.node, was.as_ref(), self.shared.listed(id));
                if is_lost {
                    state.appends.unknown += 1;
                    return Err(JournalError::Unknown("the answer was lost".to_owned()));
                }
                state.appends.stored += 1;
            }
            Err(_) => state.appends.stale += 1,
        }
        appended
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.shared.reach(&self.node).await;
        let state = self.shared.lock();
        let stored = self.shared.journal.load(id).now_or_never().expect("memory does not wait")?;
        Ok(stored.map(|stored| Stored { owner: state.owners.get(id).cloned(), ..stored }))
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.shared.reach(&self.node).await;
        self.shared.journal.chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.shared.reach(&self.node).await;
        self.shared.journal.events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.shared.reach(&self.node).await;
        self.shared.journal.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.shared.reach(&self.node).await;
        self.shared.journal.conversations(page).await
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        self.shared.reach(&self.node).await;
        let mut state = self.shared.lock();
        let was = self.shared.listed(id);
        let renamed = self.shared.journal.rename(id, title).now_or_never().expect("memory does not wait");
        state.list_changed(id, &self.node, was.as_ref(), self.shared.listed(id));
        renamed
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        self.shared.reach(&self.node).await;
        let mut state = self.shared.lock();
        let was = self.shared.listed(id);
        let removed = self.shared.journal.remove(id).now_or_never().expect("memory does not wait");
        state.owners.remove(id);
        state.publish(id, &self.node, &LiveEvent::Removed);
        state.list_changed(id, &self.node, was.as_ref(), None);
        removed
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<usize, JournalError> {
        self.shared.reach(&self.node).await;
        self.shared.journal.drop_ephemeral(idle_since).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.shared.reach(&self.node).await;
        let state = self.shared.lock();
        let unsealed = self.shared.journal.unsealed(before).now_or_never().expect("memory does not wait")?;
        let with_owner = |turn: Unsealed| Unsealed { owner: state.owners.get(&turn.id).cloned(), ..turn };
        Ok(unsealed.into_iter().map(with_owner).collect())
    }
}
