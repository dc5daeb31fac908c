//! Renaming and deleting conversations.

use std::{pin::pin, sync::Arc};

use everturn_kernel::{Input, Millis};
use everturn_wire::{ConversationId, ConversationStatus, ModelSettings};

use super::Orchestrator;
use crate::{
    Error, Head, ListCursor, Page,
    cluster::Command,
    conversation::{Control, Conversation, Seated},
};

/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 200;

/// Number of conversations looked at together when old ones are deleted.
const IDLE: usize = 64;

impl Orchestrator {
    /// Renames a conversation, durably, whether or not a turn is running. Returns the title without surrounding
    /// whitespace.
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
    /// When the conversation does not exist, or the journal fails. In the latter case the conversation remains, but its
    /// turn has ended, and what it set for itself may be gone.
    pub async fn delete(&self, id: &ConversationId) -> Result<bool, Error> {
        self.switch(id, Command::Delete).await
    }

    /// Deletes the conversations whose last activity was before this moment and that have no unsealed turn, with everything
    /// in them. Returns their number.
    ///
    /// # Errors
    /// When the journal fails. What was deleted so far stays deleted; another call continues. One that cannot be loaded is kept, and
    /// reported once the others are deleted.
    pub async fn delete_idle(&self, idle_since: Millis) -> Result<usize, Error> {
        let (mut deleted, mut last) = (0, (idle_since, ConversationId::from("~")));
        let mut left = None;
        loop {
            let after = Some(ListCursor { last_activity_at: last.0, id: last.1 });
            let some = self
                .ports
                .journal
                .conversations(Page { after, limit: Some(IDLE), ..Page::default() })
                .await?;
            let Some((id, head)) = some.last() else { return left.map_or(Ok(deleted), Err) };
            last = (head.last_activity_at, id.clone());
            let is_sealed =
                |head: &Head| !matches!(head.status, ConversationStatus::Active | ConversationStatus::Queued);
            for (id, _) in some.iter().filter(|(_, head)| is_sealed(head)) {
                match self.delete_if_idle(id, idle_since).await {
                    Ok(is_deleted) => deleted += usize::from(is_deleted),
                    Err(Error::Journal(error)) if error.is_outage() => return Err(error.into()),
                    Err(Error::ShuttingDown) => return Err(Error::ShuttingDown),
                    Err(error) => {
                        // One line for all of them: without memory, none can be loaded.
                        if left.is_none() {
                            tracing::warn!(conversation = %id, %error, "an old conversation cannot be deleted");
                        }
                        left = Some(error);
                    }
                }
            }
        }
    }

    async fn delete_if_idle(&self, id: &ConversationId, idle_since: Millis) -> Result<bool, Error> {
        let conversation = match self.registry.get(id).await {
            Err(Error::UnknownConversation { .. }) => return Ok(false),
            found => found?,
        };
        // Taken before the look at its last activity, so that a turn that begins in between is noticed.
        let vacancy = conversation.vacancy();
        let is_idle = conversation.state().record.head.last_activity_at < idle_since;
        if !is_idle || conversation.elsewhere().is_some() {
            return Ok(false);
        }
        let Ok(seated) = conversation.claim_since(vacancy) else { return Ok(false) };
        let removed = tokio::spawn(self.clone().remove(seated)).await;
        removed.map_err(|_| Error::Broken { id: id.clone() })??;
        Ok(true)
    }

    pub(super) async fn delete_here(&self, conversation: &Arc<Conversation>) -> Result<bool, Error> {
        let (seated, aborted) = self.stop_and_claim(conversation).await?;
        // In its own task, so that it completes even if this future is dropped.
        let deleted = tokio::spawn(self.clone().remove(seated)).await;
        deleted.map_err(|_| Error::Broken { id: conversation.id.clone() })??;
        Ok(aborted)
    }

    /// Stops the running turn and claims the seat, so that no turn can begin.
    async fn stop_and_claim(&self, conversation: &Arc<Conversation>) -> Result<(Seated, bool), Error> {
        let mut aborted = false;
        loop {
            let mut left = pin!(conversation.grew.notified());
            // Register before checking, so that no notification is missed.
            left.as_mut().enable();
            match conversation.claim() {
                Ok(seated) => return Ok((seated, aborted)),
                Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.send(conversation, Control { closes: true, ..Control::from(Input::Abort) }) {
                Ok(true) => aborted = true,
                // The session has ended meanwhile.
                Ok(false) => continue,
                // The inbox is full; it may already contain this command.
                Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
            left.await;
        }
    }

    async fn remove(self, seated: Seated) -> Result<(), Error> {
        let conversation = seated.conversation.clone();
        // Whoever changes settings meanwhile finds that it does not exist.
        let _alone = self.registry.alone(&conversation.id).await;
        match self.remove_stored(&conversation).await {
            Ok(()) => seated.delete(),
            Err(error) => {
                if let Error::Journal(why) = &error {
                    seated.lose(why.clone());
                }
                return Err(error);
            }
        }
        // Makes clients refresh their conversation lists.
        self.ports.status.tell(&conversation.id, ConversationStatus::Closed);
        Ok(())
    }

    async fn remove_stored(&self, conversation: &Conversation) -> Result<(), Error> {
        let (ports, id) = (&self.ports, &conversation.id);
        ports.retry.forget(id).await?;
        ports.model_settings.write(id, &ModelSettings::default()).await?;
        ports.permissions.grants.forget(id, &conversation.grants).await?;
        if let Some(reviewer) = &ports.reviewer {
            reviewer.forget(id);
        }
        ports.journal.remove(id).await?;
        Ok(())
    }
}
