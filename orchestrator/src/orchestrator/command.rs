//! Commands to conversations.

use std::sync::Arc;

use everturn_kernel::Input;
use everturn_wire::{ApprovalMode, ConversationId, QueueCancelled, Queued, QueuedMessage, TurnId};
use tokio::sync::oneshot;

use super::{Orchestrator, StartTurn};
use crate::{
    Error, Fault,
    cluster::{Command, Reply},
    conversation::{Control, Conversation},
    new_id,
    request_history::{MAX_IMAGE, MAX_IMAGES, is_image_url},
    session,
};

/// Maximum length of a user message, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Maximum length of a queued message's id, in bytes.
const MAX_MESSAGE_ID: usize = 128;

impl Orchestrator {
    /// Queues a user message. It is injected at the running turn's next tool-result boundary, or becomes the next turn. If no
    /// turn is running, it starts one at once. Returns when the message is durable. If the future is dropped, the message may be
    /// queued, or have started a turn, or not: see the queue in [`status`](Self::status).
    ///
    /// # Errors
    /// When the conversation does not exist, the message is invalid, or the queue is full.
    pub async fn enqueue(
        &self,
        id: &ConversationId,
        text: String,
        message_id: Option<String>,
    ) -> Result<Queued, Error> {
        check(&StartTurn::new(text.as_str()))?;
        let message_id = message_id.unwrap_or_else(new_id::message);
        if message_id.is_empty() || message_id.len() > MAX_MESSAGE_ID {
            let why = format!("its messageId must have 1 to {MAX_MESSAGE_ID} bytes");
            return Err(Error::BadMessage { why });
        }
        // Clients remove these segments from URL paths, so no request could cancel the message.
        if matches!(message_id.as_str(), "." | "..") {
            return Err(Error::BadMessage { why: "its messageId must not be . or ..".to_owned() });
        }
        match self.command(id, Command::Enqueue { text, message_id }).await? {
            Reply::Queued(queued) => Ok(queued),
            _ => Err(odd_reply(id)),
        }
    }

    pub(super) async fn enqueue_here(
        &self,
        conversation: &Arc<Conversation>,
        text: String,
        message_id: String,
    ) -> Result<Queued, Error> {
        let id = &conversation.id;
        let start = StartTurn::new(text).conversation(id.clone());
        let message = QueuedMessage { message_id, text: start.text.clone() };
        let started_turn = loop {
            if self.tell(conversation, Input::Steer(message.clone())).await? {
                break false;
            }
            match self.begin(conversation, start.clone(), &message).await {
                // Another turn began first, so the message waits behind it; or the conversation is still closing.
                Err(Error::Busy { .. }) => {}
                begun => break begun.map(|_| true)?,
            }
        };
        let queue = conversation.state().live.queue.clone();
        Ok(Queued { conversation_id: id.clone(), started_turn, queue })
    }

    /// Removes a queued message.
    ///
    /// # Errors
    /// When the conversation does not exist.
    pub async fn cancel_queued(
        &self,
        id: &ConversationId,
        message_id: &str,
    ) -> Result<QueueCancelled, Error> {
        match self.command(id, Command::CancelQueued { message_id: message_id.to_owned() }).await? {
            Reply::Cancelled(cancelled) => Ok(cancelled),
            _ => Err(odd_reply(id)),
        }
    }

    pub(super) async fn cancel_queued_here(
        &self,
        conversation: &Arc<Conversation>,
        message_id: String,
    ) -> Result<QueueCancelled, Error> {
        let id = &conversation.id;
        let mut cancelled = false;
        if conversation.waits(&message_id) {
            let (taken, answer) = oneshot::channel();
            let input = Input::Unsteer { message_id };
            let sent = self.send(conversation, Control { taken: Some(taken), ..Control::from(input) })?;
            // No answer if the message was taken up meanwhile.
            cancelled = sent && answer.await.is_ok();
            if sent && !cancelled {
                // Perhaps it could not be saved.
                conversation.check_kept()?;
            }
        }
        let queue = conversation.state().live.queue.clone();
        Ok(QueueCancelled { conversation_id: id.clone(), cancelled, queue })
    }

    /// Stops the running turn. Returns whether there was one. Queued messages then start the next turn.
    ///
    /// # Errors
    /// When the conversation does not exist.
    pub async fn stop(&self, id: &ConversationId) -> Result<bool, Error> {
        self.switch(id, Command::Stop).await
    }

    /// Stops this turn, if it is the one that runs; no other. Returns whether any turn was running.
    ///
    /// # Errors
    /// When the conversation does not exist.
    pub async fn stop_turn(&self, id: &ConversationId, turn_id: &TurnId) -> Result<bool, Error> {
        self.switch(id, Command::StopTurn { turn_id: turn_id.clone() }).await
    }

    pub(super) async fn stop_here(
        &self,
        conversation: &Arc<Conversation>,
        turn: Option<TurnId>,
    ) -> Result<bool, Error> {
        conversation.settled().await;
        self.order(conversation, Control { turn, ..Control::from(Input::Abort) }).await
    }

    /// Stops the running turn if its step is being retried: it is waiting, or its retry has shown nothing yet. Returns whether
    /// it was stopped.
    ///
    /// # Errors
    /// When the conversation does not exist.
    pub async fn abort_retry(&self, id: &ConversationId) -> Result<bool, Error> {
        self.switch(id, Command::AbortRetry).await
    }

    pub(super) async fn abort_retry_here(&self, conversation: &Arc<Conversation>) -> Result<bool, Error> {
        Ok(conversation.is_retrying() && self.order(conversation, Input::AbortRetry.into()).await?)
    }

    /// Skips the wait for a retry, or repeats the call to a silent provider whose answer has shown nothing yet. Returns whether
    /// either applied.
    ///
    /// # Errors
    /// When the conversation does not exist.
    pub async fn retry_now(&self, id: &ConversationId) -> Result<bool, Error> {
        self.switch(id, Command::RetryNow { model: None }).await
    }

    /// Like [`Self::retry_now`], but continues with the given model or route. A turn on a route moves to that target, if the
    /// route has it, and stays there. Otherwise the turn is sealed as aborted and a turn that repeats it begins in the same
    /// commit.
    ///
    /// # Errors
    /// When the conversation, model or route does not exist, or the model lacks a parameter that the turn's request sets.
    pub async fn retry_now_with(&self, id: &ConversationId, model: &str) -> Result<bool, Error> {
        self.switch(id, Command::RetryNow { model: Some(model.to_owned()) }).await
    }

    pub(super) async fn retry_now_here(
        &self,
        conversation: &Arc<Conversation>,
        model: Option<String>,
    ) -> Result<bool, Error> {
        let model = match model {
            Some(model) => {
                let models = self.ports.models.of(conversation.id.caller_name().as_ref());
                let choice = models.choose(Some(&model), None)?;
                let scope = conversation.state().live.running.as_ref().and_then(|turn| turn.scope.clone());
                if let Some(scope) = scope {
                    self.ports.models.now().check_parameters(&choice, &scope.parameters)?;
                }
                Some(choice.id().to_owned())
            }
            None => None,
        };
        let control = Control { model, ..Control::from(Input::RetryNow) };
        Ok(conversation.takes_retry_now() && self.order(conversation, control).await?)
    }

    /// Closes a conversation: stops its running turn and drops its queue. A new message reopens it, even one that arrives
    /// while it is closing. Returns whether a turn was running.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn close(&self, id: &ConversationId) -> Result<bool, Error> {
        self.switch(id, Command::Close).await
    }

    pub(super) async fn close_here(&self, conversation: &Arc<Conversation>) -> Result<bool, Error> {
        let id = &conversation.id;
        loop {
            conversation.settled().await;
            if self.send(conversation, Control { closes: true, ..Control::from(Input::Abort) })? {
                return Ok(true);
            }
            // Fails if a turn began first. Closing runs in its own task, so that the seat is released even if this
            // future is dropped.
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

    /// Carries out a command that either has an effect or not.
    pub(super) async fn switch(&self, id: &ConversationId, command: Command) -> Result<bool, Error> {
        match self.command(id, command).await? {
            Reply::Done(done) => Ok(done),
            _ => Err(odd_reply(id)),
        }
    }

    /// Sends a command to the running turn; wakes a parked turn. Returns false if there is none. Does not wait, unless the
    /// journal is shared: then another node may have taken the turn over unnoticed, which only the next save shows, and the
    /// command must go there.
    async fn order(&self, conversation: &Arc<Conversation>, control: Control) -> Result<bool, Error> {
        if self.ports.peers.is_none() {
            return self.send(conversation, control);
        }
        let (taken, answer) = oneshot::channel();
        let sent = self.send(conversation, Control { taken: Some(taken), ..control })?;
        if sent && answer.await.is_err() {
            conversation.check_kept()?;
        }
        Ok(sent)
    }

    /// Sends a command to the running turn and waits until it is handled. Returns false if there is no turn, or the
    /// conversation is closing.
    async fn tell(&self, conversation: &Arc<Conversation>, input: Input) -> Result<bool, Error> {
        let (taken, answer) = oneshot::channel();
        let sent = self.send(conversation, Control { taken: Some(taken), ..Control::from(input) })?;
        let taken = sent && answer.await.is_ok();
        if sent && !taken {
            // Perhaps it could not be saved.
            conversation.check_kept()?;
        }
        Ok(taken)
    }

    pub(super) fn send(&self, conversation: &Arc<Conversation>, control: Control) -> Result<bool, Error> {
        session::send(&self.ports, conversation, control)
    }
}

/// Another node sent a reply to some other command.
pub(super) fn odd_reply(id: &ConversationId) -> Error {
    let message = format!("the server that drives conversation {id} sent an unexpected reply; update it");
    Error::Remote { fault: Fault::Server, message }
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
        format!(
            "image {at} must be an https: URL, or a data:image/ or data:application/pdf URL in base64, of at most {MAX_IMAGE} bytes"
        )
    } else if start.approvals == ApprovalMode::Unknown {
        "approvals must be \"ask\" or \"deny\"".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::BadMessage { why })
}
