//! What the orchestrator is told to do.

use std::sync::Arc;

use everturn_kernel::Input;
use everturn_wire::{ApprovalMode, ConversationId, QueueCancelled, Queued, QueuedMessage};
use tokio::sync::oneshot;

use super::{Orchestrator, StartTurn};
use crate::{
    Error,
    conversation::{Control, Conversation},
    given::{MAX_IMAGE, is_image_url},
    new_id, session,
};

/// The longest user message that an orchestrator takes, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Most images of a message.
const MAX_IMAGES: usize = 16;
/// Longest name that a client may give a queued message, in bytes.
const MAX_MESSAGE_ID: usize = 128;

impl Orchestrator {
    /// Queues a user message: it is injected at the running turn's next tool-result boundary, else it is the next
    /// turn. When nothing runs it starts a turn at once. Returns when it is durable.
    ///
    /// # Errors
    /// When there is no such conversation, the message is no good, or the queue is full.
    pub async fn enqueue(
        &self,
        id: &ConversationId,
        text: String,
        message_id: Option<String>,
    ) -> Result<Queued, Error> {
        let conversation = self.find(id).await?;
        let start = StartTurn::new(text).conversation(id.clone());
        check(&start)?;
        let message_id = message_id.unwrap_or_else(new_id::message);
        if message_id.is_empty() || message_id.len() > MAX_MESSAGE_ID {
            let why = format!("its messageId must have 1 to {MAX_MESSAGE_ID} bytes");
            return Err(Error::BadMessage { why });
        }
        // A client takes them out of a path, so that no call could cancel the message.
        if matches!(message_id.as_str(), "." | "..") {
            return Err(Error::BadMessage { why: "its messageId must not be . or ..".to_owned() });
        }
        let message = QueuedMessage { message_id, text: start.text.clone() };
        let started_turn = loop {
            if self.tell(&conversation, Input::Steer(message.clone())).await? {
                break false;
            }
            match self.begin(&conversation, start.clone()).await {
                // Another turn was quicker: the message waits behind it. Or a conversation is not closed yet.
                Err(Error::Busy { .. }) => {}
                begun => break begun.map(|_| true)?,
            }
        };
        let queue = conversation.state().live.queue.clone();
        Ok(Queued { conversation_id: id.clone(), started_turn, queue })
    }

    /// Takes a queued message back.
    ///
    /// # Errors
    /// When there is no such conversation.
    pub async fn cancel_queued(
        &self,
        id: &ConversationId,
        message_id: &str,
    ) -> Result<QueueCancelled, Error> {
        let conversation = self.find(id).await?;
        let mut cancelled = false;
        if conversation.waits(message_id) {
            let (taken, answer) = oneshot::channel();
            let input = Input::Unsteer { message_id: message_id.to_owned() };
            let sent = self.send(&conversation, Control { taken: Some(taken), ..Control::from(input) })?;
            // Not answered when the message was said meanwhile.
            cancelled = sent && answer.await.is_ok();
        }
        let queue = conversation.state().live.queue.clone();
        Ok(QueueCancelled { conversation_id: id.clone(), cancelled, queue })
    }

    /// Ends the running turn. Says whether there was one. Queued messages then start the next turn.
    ///
    /// # Errors
    /// When there is no such conversation.
    pub async fn stop(&self, id: &ConversationId) -> Result<bool, Error> {
        let conversation = self.find(id).await?;
        conversation.settled().await;
        self.order(&conversation, Input::Abort)
    }

    /// Ends the running turn if its step is being retried: it waits, or was asked again and has shown nothing yet. Says
    /// whether it was.
    ///
    /// # Errors
    /// When there is no such conversation.
    pub async fn abort_retry(&self, id: &ConversationId) -> Result<bool, Error> {
        let conversation = self.find(id).await?;
        Ok(conversation.is_retrying() && self.order(&conversation, Input::AbortRetry)?)
    }

    /// Skips the wait for a retry, or asks a silent provider again of whose answer nothing was shown. Says whether there
    /// was either.
    ///
    /// # Errors
    /// When there is no such conversation.
    pub async fn retry_now(&self, id: &ConversationId) -> Result<bool, Error> {
        let conversation = self.find(id).await?;
        Ok(conversation.takes_retry_now() && self.order(&conversation, Input::RetryNow)?)
    }

    /// As [`Self::retry_now`], and goes on with this model or route, by its id. A turn on a route goes to that target of it,
    /// if it is one, and stays with it. Otherwise the turn is sealed as aborted, and one that repeats it takes its place in
    /// the same commit.
    ///
    /// # Errors
    /// When there is no such conversation, model or route.
    pub async fn retry_now_with(&self, id: &ConversationId, model: &str) -> Result<bool, Error> {
        let conversation = self.find(id).await?;
        self.ports.models.choose(Some(model), None)?;
        let control = Control { model: Some(model.to_owned()), ..Control::from(Input::RetryNow) };
        Ok(conversation.takes_retry_now() && self.send(&conversation, control)?)
    }

    /// Closes a conversation: ends its running turn and drops its queue. A new message opens it again, also one that comes
    /// before all that is done. Says whether a turn was running.
    ///
    /// # Errors
    /// When there is no such conversation, or the journal fails.
    pub async fn close(&self, id: &ConversationId) -> Result<bool, Error> {
        let conversation = self.find(id).await?;
        loop {
            conversation.settled().await;
            if self.send(&conversation, Control { closes: true, ..Control::from(Input::Abort) })? {
                return Ok(true);
            }
            // Unless a turn was quicker. In a task of its own: who asked may leave, the writer's place is given back.
            let seated = match conversation.claim() {
                Ok(seated) => seated,
                Err(Error::Busy { .. }) => continue,
                Err(error) => return Err(error),
            };
            let closing = session::close_idle(self.ports.clone(), seated);
            let closed = tokio::spawn(closing).await;
            return closed
                .map_or_else(|_| Err(Error::NotStarted { id: id.clone() }), |done| Ok(done?))
                .map(|()| false);
        }
    }

    /// Sends a command to the running turn without waiting for it; wakes a parked one. `false` when there is none.
    fn order(&self, conversation: &Arc<Conversation>, input: Input) -> Result<bool, Error> {
        self.send(conversation, Control::from(input))
    }

    /// Sends a command to the running turn and waits until it was taken in. `false` when it was not: there is none, or
    /// the conversation is being closed.
    async fn tell(&self, conversation: &Arc<Conversation>, input: Input) -> Result<bool, Error> {
        let (taken, answer) = oneshot::channel();
        let sent = self.send(conversation, Control { taken: Some(taken), ..Control::from(input) })?;
        let taken = sent && answer.await.is_ok();
        if sent && !taken {
            // Or it was not saved.
            conversation.check_kept()?;
        }
        Ok(taken)
    }

    pub(super) fn send(&self, conversation: &Arc<Conversation>, control: Control) -> Result<bool, Error> {
        session::send(&self.ports, conversation, control)
    }
}

pub(super) fn check(start: &StartTurn) -> Result<(), Error> {
    let has_message = !start.text.trim().is_empty() || !start.images.is_empty();
    let why = if start.history.is_some() && has_message {
        "give a message or messages, not both".to_owned()
    } else if start.history.is_none() && !has_message {
        "it is empty".to_owned()
    } else if start.text.len() > MAX_MESSAGE {
        format!("it has {} bytes, the most is {MAX_MESSAGE}", start.text.len())
    } else if start.images.len() > MAX_IMAGES {
        format!("it has {} images, the most is {MAX_IMAGES}", start.images.len())
    } else if let Some(at) = start.images.iter().position(|image| !is_image_url(&image.url)) {
        format!("image {at} must be an https: or data: URL of at most {MAX_IMAGE} bytes")
    } else if start.approvals == ApprovalMode::Unknown {
        "approvals must be \"ask\" or \"deny\"".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::BadMessage { why })
}
