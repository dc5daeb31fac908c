//! Where conversations are deleted: in a journal, or at a running server.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, anyhow, bail};
use everturn_orchestrator::{Cursor, Head, Journal, Page, StateStore, delete_documents, kernel::Millis};
use everturn_store_sqlite::{OpenError, SqliteJournal};
use everturn_wire::{ConversationId, ConversationList, ConversationSummary};

use super::{Source, look_at};
use crate::remote::Remote;

/// Maximum number of pages; our server returns 500 conversations per page.
const PAGES: usize = 2000;

/// Where conversations are deleted.
pub(super) enum Store<'a> {
    Journal(Arc<dyn Journal>, Option<Arc<dyn StateStore>>),
    Server(Remote<'a>),
}

impl Store<'_> {
    pub(super) fn open(source: &Source) -> Result<Self> {
        Ok(match source {
            Source::File(path) => Self::Journal(Arc::new(open(path)?), None),
            Source::Shared(shared) => Self::Journal(shared.journal.clone(), shared.state.clone()),
        })
    }

    /// All conversations, the latest first.
    pub(super) async fn conversations(&self) -> Result<Vec<(ConversationId, Head)>> {
        match self {
            Self::Journal(journal, _) => Ok(journal.conversations(Page::default()).await?),
            Self::Server(remote) => of_server(remote).await,
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
            Self::Server(remote) => drop(remote.delete(&format!("/conversations/{id}")).await?),
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

async fn of_server(remote: &Remote<'_>) -> Result<Vec<(ConversationId, Head)>> {
    let (mut all, mut next) = (Vec::new(), Some("/conversations".to_owned()));
    for _ in 0..PAGES {
        let Some(path) = next.take() else { return Ok(all) };
        let mut answer = remote.get(&path).await?.context("the server has no list of conversations")?;
        next = answer.next.take();
        let page: ConversationList = answer.read()?;
        all.extend(page.into_iter().map(|found| (found.id.clone(), head(found))));
    }
    bail!("the server has too many conversations")
}

/// What the server's list says of a conversation; the rest is unknown.
fn head(found: ConversationSummary) -> Head {
    Head {
        created_at: Millis(found.created_at),
        last_activity_at: Millis(found.last_activity_at),
        title: found.title,
        status: found.status,
        end_reason: found.end_reason,
        model: found.model,
        end: Cursor::default(),
        last_seq: 0,
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
