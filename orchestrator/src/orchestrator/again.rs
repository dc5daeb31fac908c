//! Trying the last turn again.

use std::sync::Arc;

use everturn_wire::{ConversationId, DoneReason, Role, StoredChunk, TurnId};
use tokio::sync::oneshot;

use super::{Orchestrator, Started};
use crate::{
    Error, new_id,
    session::{self, TurnSettings, TurnTask},
};

impl Orchestrator {
    /// Asks again over the same history: for the conversation's last turn, when it ended in an error or was stopped. What
    /// it said last stays for people; the model is not sent it. Returns when the new turn has begun, durably.
    ///
    /// # Errors
    /// When there is no such conversation, that turn is not its last one or ended well, another one is running, or the
    /// journal fails.
    pub async fn retry(&self, id: &ConversationId, turn_id: &TurnId) -> Result<Started, Error> {
        self.retry_with(id, turn_id, None).await
    }

    /// As [`Self::retry`], with another model or route, by its id. Later turns of the conversation use it, too.
    ///
    /// # Errors
    /// As [`Self::retry`], and when there is no such model or route.
    pub async fn retry_with(
        &self,
        id: &ConversationId,
        turn_id: &TurnId,
        model: Option<&str>,
    ) -> Result<Started, Error> {
        self.ports.shutdown.check_open()?;
        let conversation = self.find(id).await?;
        conversation.settled().await;
        // Before what is decided on is read.
        let vacancy = conversation.vacancy();
        let (last_model, chunks) = {
            let record = &conversation.state().record;
            (record.head.model.clone(), record.chunks.clone())
        };
        let refused = |why: &str| Error::NotTriedAgain { turn_id: turn_id.clone(), why: why.to_owned() };
        let metrics = self.ports.journal.metrics(id).await?;
        let last = metrics.last().filter(|turn| turn.turn_id == *turn_id);
        let last = last.ok_or_else(|| refused("it is not the last turn of its conversation"))?;
        if !matches!(last.reason, None | Some(DoneReason::Error | DoneReason::Aborted)) {
            return Err(refused("it ended neither in an error nor by a stop"));
        }
        let model = self.ports.models.choose(model, last_model.as_deref())?;
        let seated = conversation.claim_since(vacancy)?;
        let supersedes = loose_end(&chunks);
        let settings = TurnSettings::new(&self.ports, &conversation, model, None, supersedes);
        let (started, begun) = oneshot::channel();
        let again = new_id::turn();
        let job = TurnTask::retry(&self.ports, again.clone(), turn_id.clone(), settings, started);
        session::begin(&self.ports, seated, job);
        match begun.await {
            Ok(from) => Ok(Started { conversation_id: id.clone(), turn_id: again, from: from? }),
            Err(_) => Err(Error::NotStarted { id: id.clone() }),
        }
    }
}

/// Where the model's output after the last user message or tool result begins: what trying again replaces. It may be that of
/// an earlier try, where the last one was stopped before it said anything. Looked for in what still stands, since what a
/// try has replaced cannot be replaced again.
fn loose_end(chunks: &[Arc<StoredChunk>]) -> Option<u64> {
    let standing = session::standing(chunks, None);
    standing.iter().rev().take_while(|stored| stored.role == Role::Assistant).last().map(|stored| stored.seq)
}
