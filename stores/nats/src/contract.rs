//! What the orchestrator asks of a journal.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_ports::{
    Commit, Cursor, Head, Journal, JournalError, Page, Retention, Stored, StoredEvent, Unsealed, Version,
    Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};

use crate::{
    journal::NatsJournal,
    label::{self, Last},
    payload, record, walk,
};

#[async_trait]
impl Journal for NatsJournal {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        self.append_commit(id, expected, commit).await
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.load_last(id).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.read_chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.read_events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.read_metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.index.read(|index| index.page(&page)).await
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        self.set_title(id, title).await
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        self.remove_all(id).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        self.remove_ephemeral(idle_since).await
    }

    async fn drop_events(&self, retention: Retention) -> Result<usize, JournalError> {
        self.drop_old_events(retention).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.index.read(|index| index.unsealed(before)).await
    }
}

impl NatsJournal {
    /// Costs four requests, and one for each part of a large append.
    async fn load_last(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        let mut last = self.last_entry(id).await?;
        while let Some(newest) = &last
            && self.remove_strays(id, newest).await?
        {
            last = self.last_entry(id).await?;
        }
        let Some(entry) = last else { return Ok(None) };
        let label = entry.label(id)?;
        let Some(mut head) = label.head.clone() else { return Ok(None) };
        walk::check_last(&self.leader, id, &entry, &label).await?;
        let turn = match label.wait {
            None => None,
            Some(wait) => {
                let content = payload::content(&self.leader, id, &entry, &label).await?;
                Some(record::turn(&content, wait).map_err(|error| entry.unreadable(id, &error))?)
            }
        };
        self.retitle(id, &label.born, &mut head).await?;
        let owner = label::node(&label.id);
        self.cache.put(id, Last { version: entry.sequence, label });
        Ok(Some(Stored { version: Version(entry.sequence), head, turn, owner }))
    }
}
