//! Closing a conversation when no turn runs in it (any more).

use std::sync::Arc;

use everturn_wire::ConversationStatus;
use tokio::sync::mpsc;

use crate::{
    Entry, JournalError, StatusChange,
    conversation::{Batch, Control, Conversation},
    orchestrator::Shared,
};

/// Closes a conversation and gives the writer's place back. Messages that come meanwhile belong to the queue that is
/// dropped.
pub(crate) async fn close_idle(
    shared: Arc<Shared>,
    conversation: Arc<Conversation>,
    mut inbox: mpsc::Receiver<Box<Control>>,
) -> Result<(), JournalError> {
    if let Some(writer) = &mut conversation.state().writer {
        writer.closing = true;
    }
    let closed = mark_closed(&shared, &conversation).await;
    conversation.release(&mut inbox, Vec::new());
    closed
}

/// Makes it known that a conversation is closed.
pub(super) async fn mark_closed(shared: &Shared, conversation: &Conversation) -> Result<(), JournalError> {
    let (mut batch, expected) = {
        let state = conversation.state();
        (Batch::new(&conversation.id, &state), state.version)
    };
    batch.status(ConversationStatus::Closed);
    if batch.frames.is_empty() {
        return Ok(());
    }
    let mut entries: Vec<_> = batch.frames.iter().map(|frame| Entry::Event(frame.to_stored())).collect();
    entries.push(Entry::Head(batch.head.clone()));
    let version = shared.append(&conversation.id, expected, entries).await?;
    conversation.publish_idle(batch, version);
    let (conversation_id, status) = (conversation.id.clone(), ConversationStatus::Closed);
    shared.status_changed(StatusChange { conversation_id, status });
    Ok(())
}
