//! Status changes of all conversations.

use everturn_wire::{ConversationId, ConversationStatus};
use tokio::sync::broadcast;

/// How many status changes a slow receiver may lag behind.
pub(crate) const PLACES: usize = 256;

/// A conversation's status changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChange {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Its new status.
    pub status: ConversationStatus,
}

/// Broadcasts status changes. All clones have the same receivers.
#[derive(Clone)]
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
        // Fails only if nobody is subscribed.
        let _ = self.0.send(StatusChange { conversation_id: conversation_id.clone(), status });
    }
}
