//! Carrying out what a peer says.

use axum::extract::ws::Message;
use everturn_orchestrator::{Cursor, Error, Orchestrator, StartTurn, Started};
use everturn_wire::{Command, CommandError, ConversationId};

use crate::{message, watch::Watches};

/// Why a command was not carried out.
enum Refusal {
    Failed(Error),
    TooManyWatches { limit: usize },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Carries out the commands of one socket.
pub(crate) struct Executor {
    pub(crate) orchestrator: Orchestrator,
    /// Conversations that may be watched at once.
    pub(crate) most_watches: usize,
}

impl Executor {
    /// Carries out a command. What comes of it are events; an answer there is only when it fails.
    pub(crate) async fn execute(&self, frame: &str, watches: &mut Watches) -> Option<Message> {
        let command = match Command::parse(frame) {
            Ok(command) => command,
            Err(error) => return Some(not_understood(&error)),
        };
        let id = match conversation(&command).map(|id| ConversationId::parse(id.as_str())).transpose() {
            Ok(id) => id,
            Err(invalid) => return Some(message::refusal(None, &invalid.to_string())),
        };
        let refusal = self.carry_out(command, watches).await.err()?;
        let why = match refusal {
            Refusal::Failed(error) => error.to_string(),
            Refusal::TooManyWatches { limit } => {
                format!("this socket watches {limit} conversations already: unsubscribe from some first")
            }
        };
        Some(message::refusal(id, &why))
    }

    async fn carry_out(&self, command: Command, watches: &mut Watches) -> Result<(), Refusal> {
        let orchestrator = &self.orchestrator;
        match command {
            Command::ChatSend { conversation_id, message, model, images, reasoning_effort, extensions } => {
                let start = StartTurn {
                    conversation_id,
                    text: message,
                    images: images.unwrap_or_default(),
                    model,
                    reasoning_effort,
                };
                self.send(start, extensions, watches).await?;
            }
            Command::ChatSubscribe { conversation_id: id, cursor, extensions } => {
                self.check_room(Some(&id), watches)?;
                let cursor =
                    cursor.map(|cursor| cursor.parse::<Cursor>().map_err(Error::from)).transpose()?;
                self.watch(id, cursor, extensions.unwrap_or(false), watches).await?;
            }
            Command::ChatUnsubscribe { conversation_id: id } => watches.remove(&id),
            Command::ChatQueue { conversation_id: id, text, message_id } => {
                orchestrator.enqueue(&id, text, message_id).await?;
            }
            Command::ChatQueueCancel { conversation_id: id, message_id } => {
                orchestrator.cancel_queued(&id, &message_id).await?;
            }
            Command::ChatStop { conversation_id: id } => {
                orchestrator.stop(&id).await?;
            }
            Command::ChatRetry { conversation_id: id, turn_id, extensions } => {
                self.check_room(Some(&id), watches)?;
                let started = orchestrator.retry(&id, &turn_id).await?;
                self.follow(started, extensions, watches).await?;
            }
            Command::RetryAbort { conversation_id: id } => {
                orchestrator.abort_retry(&id).await?;
            }
            Command::RetryNow { conversation_id: id } => {
                orchestrator.retry_now(&id).await?;
            }
            Command::RetrySet { conversation_id: id, enabled } => {
                orchestrator.set_auto_retry(id.as_ref(), enabled).await?;
            }
        }
        Ok(())
    }

    /// Starts a turn and watches it from its start. Who watches the conversation already goes on where it is, so that
    /// nothing comes twice and nothing is left out.
    async fn send(
        &self,
        start: StartTurn,
        extensions: Option<bool>,
        watches: &mut Watches,
    ) -> Result<(), Refusal> {
        self.check_room(start.conversation_id.as_ref(), watches)?;
        let started = self.orchestrator.start(start).await?;
        self.follow(started, extensions, watches).await
    }

    async fn follow(
        &self,
        started: Started,
        extensions: Option<bool>,
        watches: &mut Watches,
    ) -> Result<(), Refusal> {
        let id = started.conversation_id;
        let watched = watches.get(&id).map(|watch| (watch.cursor, watch.extensions));
        let (from, usual) = watched.unwrap_or((started.from, false));
        self.watch(id, Some(from), extensions.unwrap_or(usual), watches).await
    }

    async fn watch(
        &self,
        id: ConversationId,
        from: Option<Cursor>,
        extensions: bool,
        watches: &mut Watches,
    ) -> Result<(), Refusal> {
        let subscription = self.orchestrator.subscribe(&id, from, extensions).await?;
        watches.insert(id, subscription, extensions);
        Ok(())
    }

    fn check_room(&self, id: Option<&ConversationId>, watches: &Watches) -> Result<(), Refusal> {
        let is_watched = id.is_some_and(|id| watches.get(id).is_some());
        if is_watched || watches.len() < self.most_watches {
            Ok(())
        } else {
            Err(Refusal::TooManyWatches { limit: self.most_watches })
        }
    }
}

/// The conversation that a command is about.
fn conversation(command: &Command) -> Option<&ConversationId> {
    match command {
        Command::ChatSend { conversation_id, .. } | Command::RetrySet { conversation_id, .. } => {
            conversation_id.as_ref()
        }
        Command::ChatSubscribe { conversation_id, .. }
        | Command::ChatUnsubscribe { conversation_id }
        | Command::ChatQueue { conversation_id, .. }
        | Command::ChatQueueCancel { conversation_id, .. }
        | Command::ChatStop { conversation_id }
        | Command::ChatRetry { conversation_id, .. }
        | Command::RetryAbort { conversation_id }
        | Command::RetryNow { conversation_id } => Some(conversation_id),
    }
}

fn not_understood(error: &CommandError) -> Message {
    match error {
        CommandError::BadFields { conversation_id, .. } => {
            let id = conversation_id.as_ref().and_then(|id| ConversationId::parse(id.as_str()).ok());
            message::refusal(id, &error.to_string())
        }
        CommandError::NotJson(_) | CommandError::NoType | CommandError::UnknownType { .. } => {
            message::error(&error.to_string())
        }
    }
}
