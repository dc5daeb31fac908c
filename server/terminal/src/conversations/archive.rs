//! Read-only access to conversations: in a file or a shared journal, beside the servers that write them, or at a running server.

use std::sync::Arc;

use anyhow::Result;
use everturn_orchestrator::{Head, Journal, Page, Window};
use everturn_store_sqlite::SqliteArchive;
use everturn_wire::{ConversationId, StoredChunk};

use super::{Place, Source, look_at, pending::Pending, remote};
use crate::remote::Remote;

/// Where conversations are read.
pub(super) enum Archive<'a> {
    File(SqliteArchive),
    Shared(Arc<dyn Journal>),
    Server(Remote<'a>),
}

impl<'a> Archive<'a> {
    pub(super) fn open(place: Place<'a>) -> Result<Self> {
        Ok(match place {
            Place::Kept(Source::File(path)) => {
                look_at(&path)?;
                Self::File(SqliteArchive::open(&path)?)
            }
            Place::Kept(Source::Shared(shared)) => Self::Shared(shared.journal),
            Place::Server(server) => Self::Server(server),
        })
    }

    /// All conversations. A server does not tell how many chunks each has.
    pub(super) async fn conversations(&self) -> Result<Vec<(ConversationId, Head)>> {
        Ok(match self {
            Self::File(file) => file.conversations()?,
            Self::Shared(journal) => journal.conversations(Page::default()).await?,
            Self::Server(server) => {
                remote::conversations(server).await?.into_iter().map(remote::head).collect()
            }
        })
    }

    /// Its unsealed turn.
    pub(super) async fn pending(&self, id: &ConversationId) -> Result<Option<Pending>> {
        let stored = match self {
            Self::File(file) => file.load(id)?,
            Self::Shared(journal) => journal.load(id).await?,
            Self::Server(server) => return Ok(remote::state(server, id).await?.map(Pending::of_state)),
        };
        Ok(stored.and_then(|stored| stored.turn).as_ref().map(Pending::of_record))
    }

    pub(super) async fn chunks(&self, id: &ConversationId, window: Window) -> Result<Vec<Arc<StoredChunk>>> {
        Ok(match self {
            Self::File(file) => file.chunks(id, window)?,
            Self::Shared(journal) => journal.chunks(id, window).await?,
            Self::Server(server) => remote::chunks(server, id, window).await?,
        })
    }

    /// The `seq` of its last chunk; `None` if it was deleted.
    pub(super) async fn last_seq(&self, id: &ConversationId) -> Result<Option<u64>> {
        let stored = match self {
            Self::File(file) => file.load(id)?,
            Self::Shared(journal) => journal.load(id).await?,
            Self::Server(server) => return remote::last_seq(server, id).await,
        };
        Ok(stored.map(|stored| stored.head.last_seq))
    }
}
