//! The journal: what a conversation is made of, durably.
//!
//! One primitive writes: [`Journal::append`], compare-and-append for one conversation. The rest reads.

mod definition;
mod guard;
mod memory;
mod page;
mod scope;
mod window;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use everturn_kernel::{Millis, Snapshot, Wait};
use everturn_wire::{ConversationId, ConversationStatus, StoredChunk, TurnMetrics};

use crate::Cursor;

pub use definition::{Configured, Definition};
pub(crate) use guard::Guarded;
pub use memory::MemoryJournal;
pub use page::{ListCursor, Page};
pub use scope::RequestScope;
pub use window::{Room, Take, Window};

/// How often a conversation was appended to; 0 = it does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64);

/// Durable storage of conversations.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Adds the entries, all or none, if the conversation is still at `expected`. Durable when it returns.
    ///
    /// # Errors
    /// [`JournalError::Stale`] when someone else wrote in between; then nothing was written.
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        entries: Vec<Entry>,
    ) -> Result<Version, JournalError>;

    /// What is needed to go on with a conversation; `None` when there is none of that id.
    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError>;

    /// A window of its history, ascending.
    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError>;

    /// Its events that end after `after`, ascending, at most `limit`.
    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError>;

    /// The figures of its sealed turns, oldest first.
    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError>;

    /// A page of all conversations but ephemeral ones ([`ConversationId::is_ephemeral`]), newest activity first, those of one
    /// moment by id.
    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError>;

    /// Removes the ephemeral conversations without an unsealed turn whose last activity is before `idle_since`, and returns
    /// how many there were. Default: none, so that they are kept for ever.
    ///
    /// # Errors
    /// When the storage fails; calling it again goes on.
    async fn drop_ephemeral(&self, _idle_since: Millis) -> Result<usize, JournalError> {
        Ok(0)
    }

    /// Conversations with an unsealed turn that must go on before `before` ([`Wait::due_at`]), the earliest first, those
    /// of one moment by id; with what it waits for. One that goes on now comes first, and before any moment but 0. One
    /// that waits for a person, and for no moment, is not listed.
    async fn unsealed(&self, before: Millis) -> Result<Vec<(ConversationId, Wait)>, JournalError>;
}

/// One thing that an append adds or replaces.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Adds a chunk to the history. Its `seq` is the last one plus 1.
    Chunk(Arc<StoredChunk>),
    /// Adds an event to the event stream.
    Event(StoredEvent),
    /// Replaces the running turn.
    Turn(Box<TurnRecord>),
    /// The running turn is sealed: drops it and adds its figures. Events before this are of it, those behind of the turn
    /// that follows.
    Sealed(Box<TurnMetrics>),
    /// Replaces what is known of the conversation as a whole.
    Head(Head),
}

/// What is known of a conversation as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it was made.
    pub created_at: Millis,
    /// When its latest chunk was added.
    pub last_activity_at: Millis,
    /// The beginning of its first message.
    pub title: String,
    /// Its status.
    pub status: ConversationStatus,
    /// The model of its last turn, as `credential/model`.
    pub model: Option<String>,
    /// The end of its event stream.
    pub end: Cursor,
    /// The `seq` of its last chunk; 0 = none.
    pub last_seq: u64,
}

/// A running turn at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRecord {
    /// The turn.
    pub snapshot: Snapshot,
    /// What it waits for before it goes on.
    pub wait: Wait,
    /// Where its first event begins.
    pub from: Cursor,
    /// The `seq` of its first chunk.
    pub first_seq: u64,
    /// What defines it beside its state.
    pub definition: Definition,
}

/// An event as it left the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Where it begins.
    pub start: Cursor,
    /// Where it ends: the cursor of those who have seen it.
    pub end: Cursor,
    /// Its JSON.
    pub json: Bytes,
}

/// What is needed to go on with a conversation.
#[derive(Clone, Debug)]
pub struct Stored {
    /// How often it was appended to.
    pub version: Version,
    /// What is known of it as a whole.
    pub head: Head,
    /// Its unsealed turn.
    pub turn: Option<TurnRecord>,
}

/// Why the journal did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Someone else wrote to the conversation.
    #[error("conversation {id} was written to by someone else (expected version {expected}, found {found})", expected = .expected.0, found = .found.0)]
    Stale {
        /// The conversation.
        id: ConversationId,
        /// What the writer thought.
        expected: Version,
        /// What it is.
        found: Version,
    },
    /// The storage failed; the same append may pass later.
    #[error("the journal failed: {0}")]
    Storage(String),
    /// This append will be refused however often it is tried: it is too large, or not of a form that can be kept.
    #[error("the journal refuses this: {0}")]
    Refused(String),
}
