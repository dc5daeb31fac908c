//! Read-only access to the conversations of a file or of a shared journal, beside the servers that write them.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use everturn_orchestrator::{Cursor, Head, Journal, Page, Stored, StoredEvent, Window};
use everturn_store_sqlite::SqliteArchive;
use everturn_wire::{ConversationId, StoredChunk};

use super::{Source, look_at};

/// Where conversations are read.
pub(super) enum Archive {
    File(SqliteArchive),
    Shared(Arc<dyn Journal>),
}

impl Archive {
    pub(super) fn open(source: &Source) -> Result<Self> {
        match source {
            Source::File(path) => Self::file(path),
            Source::Shared(shared) => Ok(Self::Shared(shared.journal.clone())),
        }
    }

    fn file(path: &Path) -> Result<Self> {
        look_at(path)?;
        Ok(Self::File(SqliteArchive::open(path)?))
    }

    pub(super) async fn conversations(&self) -> Result<Vec<(ConversationId, Head)>> {
        Ok(match self {
            Self::File(file) => file.conversations()?,
            Self::Shared(journal) => journal.conversations(Page::default()).await?,
        })
    }

    pub(super) async fn load(&self, id: &ConversationId) -> Result<Option<Stored>> {
        Ok(match self {
            Self::File(file) => file.load(id)?,
            Self::Shared(journal) => journal.load(id).await?,
        })
    }

    pub(super) async fn chunks(&self, id: &ConversationId, window: Window) -> Result<Vec<Arc<StoredChunk>>> {
        Ok(match self {
            Self::File(file) => file.chunks(id, window)?,
            Self::Shared(journal) => journal.chunks(id, window).await?,
        })
    }

    pub(super) async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>> {
        Ok(match self {
            Self::File(file) => file.events(id, after, limit)?,
            Self::Shared(journal) => journal.events(id, after, limit).await?,
        })
    }
}
