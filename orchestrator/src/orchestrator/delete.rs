//! Renaming and deleting conversations.

use std::{pin::pin, sync::Arc};

use everturn_kernel::Input;
use everturn_wire::{ConversationId, ConversationStatus, RetrySettings};

use super::Orchestrator;
use crate::{
    Error,
    conversation::{Control, Conversation, Seated},
    session::Ports,
};

/// Longest title, in characters.
const MAX_TITLE: usize = 200;

impl Orchestrator {
    /// Gives a conversation another title, durably, whether a turn runs or not. Returns the title without surrounding spaces.
    ///
    /// # Errors
    /// When the conversation does not exist, the title is invalid, or the journal fails.
    pub async fn rename(&self, id: &ConversationId, title: &str) -> Result<String, Error> {
        let title = title.trim();
        let is_title = (1..=MAX_TITLE).contains(&title.chars().count()) && !title.contains(char::is_control);
        if !is_title {
            return Err(Error::BadTitle { most: MAX_TITLE });
        }
        let status = self.status(id).await?.status;
        match self.ports.journal.rename(id, title.to_owned()).await? {
            true => self.ports.status.tell(id, status),
            false => return Err(Error::UnknownConversation { id: id.clone() }),
        }
        Ok(title.to_owned())
    }

    /// Deletes a conversation with everything in it. A running turn is stopped first, and subscribers see its end; queued
    /// messages are dropped. Returns whether a turn was running.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails: then it is still there, but its turn is over.
    pub async fn delete(&self, id: &ConversationId) -> Result<bool, Error> {
        let conversation = self.registry.get(id).await?;
        let (seated, aborted) = self.stop_and_claim(&conversation).await?;
        // In a task of its own: who asked may leave.
        let deleted = tokio::spawn(remove(self.ports.clone(), seated)).await;
        deleted.map_err(|_| Error::Broken { id: id.clone() })??;
        Ok(aborted)
    }

    /// Stops whatever runs and takes the seat, so that nothing begins any more.
    async fn stop_and_claim(&self, conversation: &Arc<Conversation>) -> Result<(Seated, bool), Error> {
        let mut aborted = false;
        loop {
            let mut left = pin!(conversation.grew.notified());
            // Listens before it looks, so that nothing falls in between.
            left.as_mut().enable();
            match conversation.claim() {
                Ok(seated) => return Ok((seated, aborted)),
                Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.send(conversation, Control { closes: true, ..Control::from(Input::Abort) }) {
                Ok(true) => aborted = true,
                // It has left meanwhile.
                Ok(false) => continue,
                // Many commands wait, this one perhaps among them.
                Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
            left.await;
        }
    }
}

async fn remove(ports: Arc<Ports>, seated: Seated) -> Result<(), Error> {
    let conversation = seated.conversation.clone();
    let id = &conversation.id;
    ports.retry.keep_of_conversation(id, &RetrySettings::default()).await?;
    ports.permissions.grants.forget(id, &conversation.grants).await?;
    ports.journal.remove(id).await?;
    seated.delete();
    // Whoever lists conversations looks again.
    ports.status.tell(id, ConversationStatus::Closed);
    Ok(())
}
