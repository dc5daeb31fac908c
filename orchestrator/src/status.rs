//! Changes of the status of conversations, as all of them are told.

use everturn_wire::{ConversationId, ConversationStatus};
use tokio::sync::broadcast;

/// Status changes that a slow listener may be behind.
const PLACES: usize = 256;

/// A conversation's status changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChange {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// What its status is now.
    pub status: ConversationStatus,
}

/// Where status changes are told.
pub(crate) struct StatusChanges(broadcast::Sender<StatusChange>);

impl Default for StatusChanges {
    fn default() -> Self {
        Self(broadcast::Sender::new(PLACES))
    }
}

impl StatusChanges {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<StatusChange> {
        self.0.subscribe()
    }

    pub(crate) fn tell(&self, conversation_id: &ConversationId, status: ConversationStatus) {
        // Nobody listens: nobody misses it.
        let _ = self.0.send(StatusChange { conversation_id: conversation_id.clone(), status });
    }
}
