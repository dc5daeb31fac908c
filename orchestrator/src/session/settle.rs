//! What comes after a turn: the next one, or a conversation at rest.

use std::sync::Arc;

use everturn_wire::ConversationStatus;

use crate::{
    Entry, JournalError, StatusChange,
    conversation::{Batch, Conversation, Inbox, Left, Rest},
    orchestrator::Shared,
};

/// Closes a conversation and gives the writer's place back. Messages that come meanwhile are
/// not taken: they open it again.
pub(crate) async fn close_idle(
    shared: Arc<Shared>,
    conversation: Arc<Conversation>,
    mut inbox: Inbox,
) -> Result<(), JournalError> {
    if let Some(writer) = &mut conversation.state().writer {
        writer.closing = true;
    }
    match settle(&shared, &conversation, &mut inbox).await {
        Ok(_) => Ok(()),
        Err(error) => {
            super::lose(&shared, &conversation, error.clone());
            Err(error)
        }
    }
}

/// Gives the writer's place back, or says which messages wait for a next turn.
pub(super) async fn settle(
    shared: &Shared,
    conversation: &Conversation,
    inbox: &mut Inbox,
) -> Result<Left, JournalError> {
    loop {
        match conversation.release(inbox) {
            Rest::Nothing => return Ok(Left::default()),
            Rest::Turn(left) => return Ok(left),
            Rest::Status(status) => mark(shared, conversation, status).await?,
        }
    }
}

/// Changes the status while no turn runs.
async fn mark(
    shared: &Shared,
    conversation: &Conversation,
    status: ConversationStatus,
) -> Result<(), JournalError> {
    let (mut batch, expected) = {
        let state = conversation.state();
        (Batch::new(&conversation.id, &state), state.version)
    };
    batch.status(status);
    let mut entries: Vec<_> = batch.frames.iter().map(|frame| Entry::Event(frame.to_stored())).collect();
    entries.push(Entry::Head(batch.head.clone()));
    let version = shared.append(&conversation.id, expected, entries).await?;
    conversation.publish_idle(batch, version);
    shared.status_changed(StatusChange { conversation_id: conversation.id.clone(), status });
    Ok(())
}
