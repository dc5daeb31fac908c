//! The journal: durable storage of conversations.
//!
//! One primitive writes: [`Journal::append`], compare-and-append for one conversation. The rest reads.

mod commit;
mod definition;
mod memory;
mod owner;
mod page;
mod retention;
mod scope;
mod window;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use everturn_kernel::{Millis, Snapshot, Wait};
use everturn_wire::{ConversationId, ConversationStatus, DoneReason, StoredChunk, TurnMetrics};

use crate::Cursor;

pub use commit::Commit;
pub use definition::{Configured, Definition};
pub use memory::MemoryJournal;
pub use owner::{NodeId, Unsealed};
pub use page::{ListCursor, Page};
pub use retention::Retention;
pub use scope::RequestScope;
pub use window::{Room, Take, Window};

/// The version of a conversation: 0 = it does not exist; otherwise whatever its journal returned for the last append.
///
/// The versions of a conversation increase, also when it is deleted and begun again: what a late writer knows of the deleted one is
/// never the version of the new one. Their values mean nothing else: a journal may count appends, or number the
/// appends of all conversations together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64);

/// Durable storage of conversations, of one orchestrator: two over one journal take each other's turns, unless they are nodes of a
/// [`Cluster`](crate::Cluster).
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Writes a commit, all of it or nothing, if the conversation is still at version `expected`. Durable when it returns.
    ///
    /// # Errors
    /// - [`JournalError::Stale`] if someone else wrote in between; nothing is written.
    /// - [`JournalError::Unknown`] if it may or may not have been written. [`Self::load`] shows which, or makes it
    ///   decidable: an append at the version that it returns is either stale, or succeeds, and then the lost one was
    ///   not written.
    /// - [`JournalError::TooLarge`] and [`JournalError::Refused`] if it can never be written.
    /// - [`JournalError::Storage`] if nothing was written and the same append may succeed later.
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError>;

    /// Loads what is needed to continue a conversation; `None` if it does not exist.
    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError>;

    /// Returns a window of its history, in ascending order.
    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError>;

    /// Returns up to `limit` events that end after `after`, in ascending order.
    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError>;

    /// Returns the figures of its sealed turns, oldest first.
    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError>;

    /// Returns a page of the conversations that are not ephemeral ([`ConversationId::is_ephemeral`]), most recent activity
    /// first, then by id.
    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError>;

    /// Replaces the title of a conversation; later appends keep it. Returns false if the conversation does not exist.
    /// Default: refuses.
    async fn rename(&self, _id: &ConversationId, _title: String) -> Result<bool, JournalError> {
        Err(JournalError::Refused("this journal cannot rename conversations".to_owned()))
    }

    /// Removes a conversation with everything in it. Returns false if it does not exist. Default: refuses.
    async fn remove(&self, _id: &ConversationId) -> Result<bool, JournalError> {
        Err(JournalError::Refused("this journal cannot delete conversations".to_owned()))
    }

    /// Removes ephemeral conversations whose last activity was before `idle_since` and that have no unsealed turn. Returns
    /// which it removed: their documents are deleted next. Default: removes none.
    ///
    /// # Errors
    /// When the storage fails; another call continues.
    async fn drop_ephemeral(&self, _idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        Ok(Vec::new())
    }

    /// Deletes the events of sealed turns that need not be kept, and returns their number. History and the turns' figures
    /// are kept, and so are the events of unsealed turns. A subscriber with an older cursor continues with the first
    /// remaining event. Default: deletes none.
    ///
    /// # Errors
    /// When the storage fails. What was deleted so far stays deleted; another call continues.
    async fn drop_events(&self, _retention: Retention) -> Result<usize, JournalError> {
        Ok(0)
    }

    /// Gives space that is no longer used back to the system, if it is worth the work. Returns the number of bytes. Appends
    /// may wait meanwhile. Default: gives back none.
    ///
    /// # Errors
    /// When the storage fails. Nothing is lost.
    async fn give_back(&self) -> Result<u64, JournalError> {
        Ok(0)
    }

    /// Returns conversations with an unsealed turn that is due before `before` ([`Wait::due_at`]), earliest first, then by id. A turn that must continue now comes first and is due before any time except 0. A turn that
    /// waits for a person without a deadline is not listed.
    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError>;
}

/// The head of a conversation: what lists and readers need without its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it was created.
    pub created_at: Millis,
    /// When its latest chunk was added.
    pub last_activity_at: Millis,
    /// The beginning of its first message.
    pub title: String,
    /// Its status.
    pub status: ConversationStatus,
    /// Why its last turn ended; `None` if a turn is unsealed, if there was none, or if it is not known.
    pub end_reason: Option<DoneReason>,
    /// The model of its last turn, as `credential/model`.
    pub model: Option<String>,
    /// The end of its event stream.
    pub end: Cursor,
    /// The `seq` of its last chunk; 0 = none.
    pub last_seq: u64,
}

impl Head {
    /// The head of a conversation that is created now, and has nothing in it yet.
    pub fn new(now: Millis) -> Self {
        Self {
            created_at: now,
            last_activity_at: now,
            title: String::new(),
            status: ConversationStatus::Idle,
            end_reason: None,
            model: None,
            end: Cursor::default(),
            last_seq: 0,
        }
    }
}

/// The stored form of a running turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRecord {
    /// The turn.
    pub snapshot: Snapshot,
    /// What it waits for before it continues.
    pub wait: Wait,
    /// Where its first event begins.
    pub from: Cursor,
    /// The `seq` of its first chunk.
    pub first_seq: u64,
    /// What defines it besides its state.
    pub definition: Definition,
}

/// An event as it was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Where it begins.
    pub start: Cursor,
    /// Where it ends: the cursor of subscribers that have received it.
    pub end: Cursor,
    /// Its JSON.
    pub json: Bytes,
}

/// What is needed to continue a conversation.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its version.
    pub version: Version,
    /// Its head.
    pub head: Head,
    /// Its unsealed turn.
    pub turn: Option<TurnRecord>,
    /// The node that wrote this version, and drives the unsealed turn. `None`: the journal is not shared.
    pub owner: Option<NodeId>,
}

/// An error of the journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Someone else wrote to the conversation.
    #[error("conversation {id} was written to by someone else (expected version {expected}, found {found})", expected = .expected.0, found = .found.0)]
    Stale {
        /// The conversation.
        id: ConversationId,
        /// The version that the writer expected.
        expected: Version,
        /// The actual version.
        found: Version,
    },
    /// The storage failed and nothing was written; the same append may succeed later.
    #[error("the journal failed: {0}")]
    Storage(String),
    /// The storage failed, and the append may or may not have been written.
    #[error("the journal failed; this may or may not have been saved: {0}")]
    Unknown(String),
    /// The append can never succeed: it is larger than the journal accepts.
    #[error("the journal refuses this: it has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// The size of the append, in bytes.
        bytes: u64,
        /// The largest append, in bytes.
        limit: u64,
    },
    /// The append can never succeed: its form cannot be stored.
    #[error("the journal refuses this: {0}")]
    Refused(String),
}

impl JournalError {
    /// Whether the same append would fail in the same way again.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::Refused(_))
    }

    /// Whether the storage failed, so that other appends may fail, too.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Storage(_) | Self::Unknown(_))
    }
}
