//! What other nodes change in the list of conversations.

use async_trait::async_trait;
use everturn_kernel::Wait;
use everturn_wire::ConversationId;
use futures_core::stream::BoxStream;

use crate::{Head, JournalError};

/// Announces changes to the list of conversations that other nodes make, and knows what their turns wait for. Best effort:
/// an event may be late, and the list may have changed again since.
#[async_trait]
pub trait ListBus: Send + Sync + 'static {
    /// Follows the changes of other nodes. Each one made after this returns is in the stream, or the stream says
    /// [`ListEvent::Missed`]. A receiver that is slow misses some; memory does not grow with them.
    ///
    /// # Errors
    /// When the bus cannot be reached.
    async fn follow(&self) -> Result<BoxStream<'static, ListEvent>, JournalError>;

    /// Returns what the unsealed turns of these conversations wait for, whichever node drives them. Omits conversations
    /// without one. At least as recent as the last page of the list that this node has read from its journal.
    fn waits(&self, ids: &[&ConversationId]) -> Vec<(ConversationId, Wait)>;
}

/// A change of the list by another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListEvent {
    /// A conversation is new, or its status, title, model or the end of its last turn has changed. Not sent if only the wait
    /// or the time of its last activity has.
    Changed(Listed),
    /// A conversation was deleted.
    Removed(ConversationId),
    /// Events were lost: read the list.
    Missed,
}

/// What the list shows of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The conversation.
    pub id: ConversationId,
    /// Its head.
    pub head: Head,
    /// What its turn waits for, if one is unsealed.
    pub wait: Option<Wait>,
}
