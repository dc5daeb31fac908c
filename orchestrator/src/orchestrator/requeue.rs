//! Queued messages that another node may have accepted although no reply arrived.

use everturn_wire::{AgentEvent, ConversationId, EventBody};

use super::Orchestrator;
use crate::{Cursor, JournalError};

/// Number of events that are read at a time.
const EVENTS: usize = 256;

impl Orchestrator {
    /// Whether a message has been queued after this cursor. The saved events tell, also if the message was used or withdrawn
    /// since: each change of the queue names all messages in it.
    pub(super) async fn was_queued(
        &self,
        id: &ConversationId,
        mut after: Cursor,
        message_id: &str,
    ) -> Result<bool, JournalError> {
        loop {
            let events = self.ports.journal.events(id, after, EVENTS).await?;
            let Some(last) = events.last() else { return Ok(false) };
            after = last.end;
            if events.iter().any(|event| names(&event.json, message_id)) {
                return Ok(true);
            }
        }
    }
}

/// Whether an event is a change of the queue after which this message is in it.
fn names(json: &[u8], message_id: &str) -> bool {
    match serde_json::from_slice::<AgentEvent>(json).map(|event| event.body) {
        Ok(EventBody::QueueChanged { queue }) => queue.iter().any(|queued| queued.message_id == message_id),
        _ => false,
    }
}
