//! What follows a turn: the next turn, or rest.

use std::sync::Arc;

use everturn_wire::ConversationStatus;

use super::Ports;
use crate::{
    Frame,
    conversation::{AfterTurn, Batch, Conversation, LeftoverMessages, Seated},
    journal::{Commit, JournalError},
};

/// Closes a conversation and leaves the seat. Messages that arrive in the meantime get no reply: they reopen the
/// conversation.
pub(crate) async fn close_idle(ports: Arc<Ports>, mut seated: Seated) -> Result<(), JournalError> {
    seated.close();
    match settle(&ports, &mut seated).await {
        Ok(_) => Ok(()),
        Err(error) => {
            seated.lose(error.clone());
            Err(error)
        }
    }
}

/// Leaves the seat, or returns the messages for a next turn.
pub(super) async fn settle(ports: &Ports, seated: &mut Seated) -> Result<LeftoverMessages, JournalError> {
    loop {
        match seated.release() {
            AfterTurn::Nothing => return Ok(LeftoverMessages::default()),
            AfterTurn::Turn(left) => return Ok(left),
            AfterTurn::Status(status) => mark(ports, &seated.conversation, status).await?,
        }
    }
}

/// Changes the status while no turn runs.
async fn mark(
    ports: &Ports,
    conversation: &Conversation,
    status: ConversationStatus,
) -> Result<(), JournalError> {
    let (mut batch, expected) = {
        let state = conversation.state();
        (Batch::new(&conversation.id, &state), state.record.version)
    };
    batch.status(status);
    let events = batch.frames.iter().map(Frame::to_stored).collect();
    let commit = Commit { events, ..Commit::new(batch.head.clone()) };
    let version = ports.append(&conversation.id, expected, commit).await?;
    conversation.publish_idle(batch, version);
    ports.status.tell(&conversation.id, status);
    Ok(())
}
