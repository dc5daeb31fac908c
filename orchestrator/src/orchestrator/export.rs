//! Reads a whole conversation, one window at a time.

use std::sync::Arc;

use everturn_wire::{ConversationId, StoredChunk};

use super::Orchestrator;
use crate::{Error, Head, Journal, Take, Window};

/// Maximum size of a window: in chunks, and in bytes of their JSON. A larger chunk comes alone.
const CHUNKS: usize = 256;
const BYTES: usize = 256 << 10;

/// A conversation as it was at one moment, read one window at a time. Chunks that are added later are not part of it.
#[derive(Clone)]
pub struct Export {
    journal: Arc<dyn Journal>,
    full_id: ConversationId,
    /// The id under which its reader knows it.
    id: ConversationId,
    head: Head,
    /// The `seq` of the last chunk that was read.
    at: u64,
}

impl Orchestrator {
    /// Begins to read a whole conversation as it is now. A running turn is read as far as it is saved, and not waited for:
    /// [`Head::status`] says whether there is one.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn export(&self, id: &ConversationId) -> Result<Export, Error> {
        let journal = self.ports.journal.clone();
        let stored = journal.load(id).await?;
        let head = stored.ok_or_else(|| Error::UnknownConversation { id: id.clone() })?.head;
        Ok(Export { journal, full_id: id.clone(), id: id.clone(), head, at: 0 })
    }
}

impl Export {
    /// Returns the conversation's id.
    pub fn id(&self) -> &ConversationId {
        &self.id
    }

    pub(crate) fn shown_as(self, id: ConversationId) -> Self {
        Self { id, ..self }
    }

    /// Returns the conversation's head when the export began.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the next chunks, in ascending order; `None` at the end, when all chunks were read.
    ///
    /// # Errors
    /// When the conversation was deleted meanwhile, even if another one has its id now, or the journal fails.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<StoredChunk>>>, Error> {
        let last = self.head.last_seq;
        if self.at >= last {
            return self.check().await.map(|()| None);
        }
        let window = Window {
            since_seq: Some(self.at),
            before_seq: Some(last + 1),
            limit: Some(CHUNKS),
            max_bytes: Some(BYTES),
            take: Take::Oldest,
        };
        let chunks = self.journal.chunks(&self.full_id, window).await?;
        self.at = chunks.last().ok_or_else(|| self.deleted())?.seq;
        Ok(Some(chunks))
    }

    /// Checks that all chunks were of the same conversation.
    async fn check(&self) -> Result<(), Error> {
        let stored = self.journal.load(&self.full_id).await?;
        let is_same = |head: &Head| head.created_at == self.head.created_at && head.end >= self.head.end;
        stored.filter(|stored| is_same(&stored.head)).map(drop).ok_or_else(|| self.deleted())
    }

    fn deleted(&self) -> Error {
        Error::UnknownConversation { id: self.id.clone() }
    }
}
