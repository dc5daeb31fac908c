//! Errors of orchestrator operations.

use everturn_wire::{ConversationId, TurnId};

use crate::{cursor::InvalidCursor, journal::JournalError};

/// An error of an orchestrator operation. The message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A turn is running.
    #[error("conversation {id} is busy with a turn: wait until it is sealed, stop it, or queue the message")]
    Busy {
        /// The conversation.
        id: ConversationId,
    },
    /// The conversation does not exist.
    #[error("there is no conversation {id}")]
    UnknownConversation {
        /// What was asked for.
        id: ConversationId,
    },
    /// The model does not exist.
    #[error("unknown model {model:?}; {}", known_models(.known))]
    UnknownModel {
        /// What was asked for.
        model: String,
        /// The known models.
        known: Vec<String>,
    },
    /// The orchestrator is shutting down and accepts no new turns.
    #[error("shutting down: not accepting new turns; unfinished turns resume after the restart")]
    ShuttingDown,
    /// The message is invalid.
    #[error("the message cannot be sent: {why}")]
    BadMessage {
        /// Why.
        why: String,
    },
    /// The title is invalid.
    #[error("a title has 1 to {most} characters, on one line")]
    BadTitle {
        /// Maximum number of characters.
        most: usize,
    },
    /// A target's API does not support some of the parameters.
    #[error(
        "{target} does not support {}: leave it out, or choose another model",
        .names.join(", ")
    )]
    UnsupportedParameter {
        /// The parameters, by their wire names.
        names: Vec<&'static str>,
        /// The target, as `credential/model`.
        target: String,
    },
    /// The idempotency key was already used for a turn that cannot be returned.
    #[error("this idempotency key was used for turn {turn_id}, {why}")]
    KeyUsed {
        /// The turn.
        turn_id: TurnId,
        /// Why that turn cannot be returned.
        why: String,
    },
    /// The retry settings are invalid.
    #[error(transparent)]
    BadRetrySettings(#[from] everturn_wire::InvalidRetrySettings),
    /// The id is invalid.
    #[error(transparent)]
    BadId(#[from] everturn_wire::InvalidId),
    /// The cursor is invalid: this server never issued it.
    #[error(transparent)]
    BadCursor(#[from] InvalidCursor),
    /// The conversation has no older part that could be summarized.
    #[error(
        "conversation {id} is too short to summarize: it has no unsummarized message before the last one"
    )]
    NothingToSummarize {
        /// The conversation.
        id: ConversationId,
    },
    /// The turn cannot be retried.
    #[error("turn {turn_id} cannot be tried again: {why}")]
    NotTriedAgain {
        /// The turn.
        turn_id: TurnId,
        /// Why.
        why: String,
    },
    /// The turn does not exist.
    #[error("conversation {id} has no turn {turn_id}")]
    UnknownTurn {
        /// The conversation.
        id: ConversationId,
        /// The turn.
        turn_id: TurnId,
    },
    /// The required report is invalid.
    #[error("the final report cannot be required: {why}")]
    BadReport {
        /// Why.
        why: String,
    },
    /// The retry request is invalid.
    #[error("this cannot be asked again: {why}")]
    BadRetry {
        /// Why.
        why: String,
    },
    /// The user message was superseded by a later branch.
    #[error("user message {seq} cannot be answered again: a later version replaced it or what it follows")]
    Superseded {
        /// The `seq` in the request.
        seq: u64,
    },
    /// The answer to a request for approval, or to a question, is invalid.
    #[error("the answer cannot be used: {why}")]
    BadAnswer {
        /// Why.
        why: String,
    },
    /// The question about usage is invalid.
    #[error("usage cannot be read: {why}")]
    BadUsageQuery {
        /// Why.
        why: String,
    },
    /// The conversation's queue is full.
    #[error(
        "conversation {id} has {limit} queued messages already: wait until they are taken up, or cancel some"
    )]
    QueueFull {
        /// The conversation.
        id: ConversationId,
        /// The queue's capacity.
        limit: usize,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The conversation could not be saved: the journal failed, or someone else wrote to it.
    #[error("conversation {id} could not be saved: {why}; its turn will resume from its last save")]
    NotSaved {
        /// The conversation.
        id: ConversationId,
        /// Why.
        why: JournalError,
    },
    /// The task that drove the conversation's turn ended unexpectedly.
    #[error(
        "the turn of conversation {id} broke off; it resumes from its last save within seconds; see the server's log"
    )]
    Broken {
        /// The conversation.
        id: ConversationId,
    },
    /// An unsealed turn cannot continue because no model is configured.
    #[error(
        "the turn of conversation {id} cannot go on: no model is configured; configure its model and start again"
    )]
    NoModel {
        /// The conversation.
        id: ConversationId,
    },
    /// The journal holds a turn that this program cannot read.
    #[error("the unfinished turn of conversation {id} cannot be resumed: {why}")]
    Unreadable {
        /// The conversation.
        id: ConversationId,
        /// Why.
        why: String,
    },
    /// Another node drives the conversation, and it changed hands while this was being done.
    #[error("conversation {id} is being taken over by another server: try again")]
    Elsewhere {
        /// The conversation.
        id: ConversationId,
    },
    /// The turn's node is gone, and this one lacks what it needs.
    #[error(
        "the turn of conversation {id} waits for a server that has {what}: this one does not; configure it, or start one that has it"
    )]
    Lacks {
        /// The conversation.
        id: ConversationId,
        /// A model, targets or a tool, by name.
        what: String,
    },
    /// The node that drives the conversation is alive, but did not reply.
    #[error(
        "server {node}, which drives conversation {id}, did not reply: check the conversation, then try again"
    )]
    NoReply {
        /// The conversation.
        id: ConversationId,
        /// The node.
        node: crate::NodeId,
    },
    /// An error of the node that drives the conversation.
    #[error("{message}")]
    Remote {
        /// Who is at fault.
        fault: Fault,
        /// Its message.
        message: String,
    },
    /// There is no memory left to load the conversation.
    #[error(
        "no memory left for conversation {id}: all conversations together may take {total_mib} MiB (total_mib in [memory]); try again when \
         fewer are in use"
    )]
    NoMemory {
        /// The conversation.
        id: ConversationId,
        /// The limit, in MiB.
        total_mib: usize,
    },
    /// Only the administrator can do this.
    #[error("this token may not {what}: only the administrator can")]
    NotAllowed {
        /// What.
        what: &'static str,
    },
    /// The caller's token was revoked, or has expired.
    #[error("this token is no longer valid")]
    TokenEnded,
    /// The turn ended before it could be saved.
    #[error("conversation {id} could not begin the turn; the server's log says why")]
    NotStarted {
        /// The conversation.
        id: ConversationId,
    },
}

/// Who is at fault for an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Fault {
    /// The caller: the same request will fail again.
    Caller,
    /// The caller named something that does not exist.
    Missing,
    /// The caller may not do this.
    Forbidden,
    /// Nobody: the request conflicts with the current state.
    Conflict,
    /// Nobody: this is impossible now, but possible later, perhaps in another process.
    Unavailable,
    /// The server.
    Server,
}

fn known_models(known: &[String]) -> String {
    match known {
        [] => "none is known until a provider's list can be read: name one as PROVIDER/MODEL".to_owned(),
        _ => format!("known models: {}", known.join(", ")),
    }
}

impl Error {
    /// Replaces the conversation's id by the one that its caller knows.
    pub(crate) fn local(mut self) -> Self {
        match &mut self {
            Self::Busy { id }
            | Self::UnknownConversation { id }
            | Self::NothingToSummarize { id }
            | Self::UnknownTurn { id, .. }
            | Self::QueueFull { id, .. }
            | Self::NotSaved { id, .. }
            | Self::Broken { id }
            | Self::NoModel { id }
            | Self::Unreadable { id, .. }
            | Self::Elsewhere { id }
            | Self::Lacks { id, .. }
            | Self::NoReply { id, .. }
            | Self::NoMemory { id, .. }
            | Self::NotStarted { id } => *id = id.local(),
            _ => {}
        }
        self
    }

    /// Returns who is at fault; transports derive their status codes from it.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Busy { .. }
            | Self::QueueFull { .. }
            | Self::NotTriedAgain { .. }
            | Self::NothingToSummarize { .. }
            | Self::KeyUsed { .. }
            | Self::Superseded { .. } => Fault::Conflict,
            Self::ShuttingDown
            | Self::Elsewhere { .. }
            | Self::NoReply { .. }
            | Self::Lacks { .. }
            | Self::NoMemory { .. } => Fault::Unavailable,
            Self::Remote { fault, .. } => *fault,
            Self::UnknownConversation { .. } | Self::UnknownTurn { .. } => Fault::Missing,
            Self::NotAllowed { .. } | Self::TokenEnded => Fault::Forbidden,
            Self::UnknownModel { .. }
            | Self::BadMessage { .. }
            | Self::BadTitle { .. }
            | Self::UnsupportedParameter { .. }
            | Self::BadAnswer { .. }
            | Self::BadRetrySettings(_)
            | Self::BadRetry { .. }
            | Self::BadReport { .. }
            | Self::BadUsageQuery { .. }
            | Self::BadId(_)
            | Self::BadCursor(_) => Fault::Caller,
            Self::Journal(_)
            | Self::NotSaved { .. }
            | Self::Broken { .. }
            | Self::NoModel { .. }
            | Self::Unreadable { .. }
            | Self::NotStarted { .. } => Fault::Server,
        }
    }
}
