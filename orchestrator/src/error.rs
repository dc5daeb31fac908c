//! What can go wrong when the orchestrator is asked for something.

use everturn_wire::{ConversationId, TurnId};

use crate::{cursor::InvalidCursor, journal::JournalError};

/// What can go wrong when the orchestrator is asked for something. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A turn is running.
    #[error("conversation {id} is busy with a turn: wait until it is sealed, stop it, or queue the message")]
    Busy {
        /// The conversation.
        id: ConversationId,
    },
    /// There is no such conversation.
    #[error("there is no conversation {id}")]
    UnknownConversation {
        /// What was asked for.
        id: ConversationId,
    },
    /// There is no such model.
    #[error("unknown model {model:?}; known models: {}", .known.join(", "))]
    UnknownModel {
        /// What was asked for.
        model: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No turn begins any more.
    #[error("shutting down: not accepting new turns; unfinished turns resume after the restart")]
    ShuttingDown,
    /// A message that cannot be sent.
    #[error("the message cannot be sent: {why}")]
    BadMessage {
        /// Why.
        why: String,
    },
    /// A title that a conversation cannot have.
    #[error("a title has 1 to {most} characters, on one line")]
    BadTitle {
        /// The most characters.
        most: usize,
    },
    /// Parameters that a target's API does not have.
    #[error(
        "{target} does not support {}: leave it out, or choose another model",
        .names.join(", ")
    )]
    UnsupportedParameter {
        /// The parameters, as they are written on the wire.
        names: Vec<&'static str>,
        /// The target, as `credential/model`.
        target: String,
    },
    /// An idempotency key that cannot be used again.
    #[error("this idempotency key was used for turn {turn_id}, {why}")]
    KeyUsed {
        /// The turn.
        turn_id: TurnId,
        /// Why that turn is not the answer.
        why: String,
    },
    /// Retry settings that cannot be used.
    #[error(transparent)]
    BadRetrySettings(#[from] everturn_wire::InvalidRetrySettings),
    /// An id that cannot be used.
    #[error(transparent)]
    BadId(#[from] everturn_wire::InvalidId),
    /// A cursor that this server never gave out.
    #[error(transparent)]
    BadCursor(#[from] InvalidCursor),
    /// A turn that is not tried again.
    #[error("turn {turn_id} cannot be tried again: {why}")]
    NotTriedAgain {
        /// The turn.
        turn_id: TurnId,
        /// Why.
        why: String,
    },
    /// There is no turn of that id.
    #[error("conversation {id} has no turn {turn_id}")]
    UnknownTurn {
        /// The conversation.
        id: ConversationId,
        /// The turn.
        turn_id: TurnId,
    },
    /// A report that no turn can be required to end with.
    #[error("the final report cannot be required: {why}")]
    BadReport {
        /// Why.
        why: String,
    },
    /// Nothing that can be asked again was named.
    #[error("this cannot be asked again: {why}")]
    BadRetry {
        /// Why.
        why: String,
    },
    /// A user message that is no longer part of the conversation as it goes on.
    #[error("user message {seq} cannot be answered again: a later version replaced it or what it follows")]
    Superseded {
        /// The `seq` that was named.
        seq: u64,
    },
    /// An answer to a request for approval that cannot be used.
    #[error("the answer cannot be used: {why}")]
    BadAnswer {
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
        /// How many fit.
        limit: usize,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal failed under a conversation, or somebody else wrote to it.
    #[error("conversation {id} could not be saved: {why}; its turn will resume from its last save")]
    NotSaved {
        /// The conversation.
        id: ConversationId,
        /// Why.
        why: JournalError,
    },
    /// Whoever drove the conversation's turn broke.
    #[error(
        "the turn of conversation {id} broke off; it resumes from its last save within seconds; see the server's log"
    )]
    Broken {
        /// The conversation.
        id: ConversationId,
    },
    /// An unsealed turn cannot go on.
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
    /// The turn ended before it could be saved.
    #[error("conversation {id} could not begin the turn; the server's log says why")]
    NotStarted {
        /// The conversation.
        id: ConversationId,
    },
}

/// Who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller: the same request will fail again.
    Caller,
    /// The caller named something that does not exist.
    Missing,
    /// Something else is in the way for now.
    Conflict,
    /// Nobody: it cannot be done now, and can be done later, perhaps by another process.
    Unavailable,
    /// We are.
    Server,
}

impl Error {
    /// Who is at fault; transports derive their codes from it.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Busy { .. }
            | Self::QueueFull { .. }
            | Self::NotTriedAgain { .. }
            | Self::KeyUsed { .. }
            | Self::Superseded { .. } => Fault::Conflict,
            Self::ShuttingDown => Fault::Unavailable,
            Self::UnknownConversation { .. } | Self::UnknownTurn { .. } => Fault::Missing,
            Self::UnknownModel { .. }
            | Self::BadMessage { .. }
            | Self::BadTitle { .. }
            | Self::UnsupportedParameter { .. }
            | Self::BadAnswer { .. }
            | Self::BadRetrySettings(_)
            | Self::BadRetry { .. }
            | Self::BadReport { .. }
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
