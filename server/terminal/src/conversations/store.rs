//! Where conversations are deleted: in a journal, or at a running server.

use std::{path::Path, sync::Arc};

use anyhow::{Result, anyhow};
use everturn_orchestrator::{Head, Journal, Page, StateStore, delete_documents};
use everturn_store_sqlite::{OpenError, SqliteJournal};
use everturn_wire::ConversationId;

use super::{Place, Source, look_at, remote};
use crate::remote::Remote;

/// Where conversations are deleted.
pub(super) enum Store<'a> {
    Journal(Arc<dyn Journal>, Option<Arc<dyn StateStore>>),
    Server(Remote<'a>),
}

impl<'a> Store<'a> {
    pub(super) fn open(place: Place<'a>) -> Result<Self> {
        Ok(match place {
            Place::Kept(Source::File(path)) => Self::Journal(Arc::new(open(&path)?), None),
            Place::Kept(Source::Shared(shared)) => Self::Journal(shared.journal, shared.state),
            Place::Server(server) => Self::Server(server),
        })
    }

    /// All conversations, the latest first.
    pub(super) async fn conversations(&self) -> Result<Vec<(ConversationId, Head)>> {
        match self {
            Self::Journal(journal, _) => Ok(journal.conversations(Page::default()).await?),
            Self::Server(server) => {
                Ok(remote::conversations(server).await?.into_iter().map(remote::head).collect())
            }
        }
    }

    pub(super) async fn remove(&self, id: &ConversationId) -> Result<()> {
        match self {
            Self::Journal(journal, state) => {
                if let Some(state) = state {
                    delete_documents(&**state, id).await?;
                }
                journal.remove(id).await?;
            }
            // If it is not there, somebody else was faster.
            Self::Server(server) => drop(server.delete(&format!("/conversations/{id}")).await?),
        }
        Ok(())
    }

    /// Gives the space of deleted conversations back to the system. A server does that itself, within an hour.
    pub(super) async fn give_back(&self) -> Result<u64> {
        match self {
            Self::Journal(journal, _) => Ok(journal.give_back().await?),
            Self::Server(_) => Ok(0),
        }
    }
}

/// Opens the file for writing; it can have only one writer.
fn open(path: &Path) -> Result<SqliteJournal> {
    look_at(path)?;
    SqliteJournal::open(path).map_err(|error| match error {
        OpenError::InUse { path, .. } => anyhow!(
            "a server has {} open, and would go on writing to what is deleted: have it delete them, with --server, e.g. \
             --server http://127.0.0.1:4777",
            path.display()
        ),
        error => error.into(),
    })
}
