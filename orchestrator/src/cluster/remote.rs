//! Commands in the form in which they travel between nodes.

use bytes::Bytes;
use everturn_wire::{
    ApprovalAnswer, ConversationId, Question, QuestionAnswer, QueueCancelled, Queued, RetryPatch,
    RetrySettingsState, TurnId,
};
use serde::{Deserialize, Serialize};

use crate::{Cursor, Error, Fault, JournalError, StoredEvent, Version};

use super::Streamed;

/// A request to the node that drives a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Request {
    /// Is the node alive?
    Ping,
    /// A node has left: look for turns without an owner.
    TakeOver,
    /// The sender lacks what it needs to continue a turn without an owner. Can you?
    Continue { id: ConversationId },
    /// Returns streamed text after this cursor that no append contains yet.
    Tail { id: ConversationId, after: u64 },
    /// Returns the open questions of the conversation.
    Questions { id: ConversationId },
    /// A command.
    Command {
        id: ConversationId,
        /// Where the turn begins that its sender saw, so that a late command does not affect the next turn.
        turn: Option<u64>,
        command: Command,
        /// For a *retry now*: when the wait that its sender saw ends, so that a late one does not end the next wait.
        #[serde(default)]
        wait: Option<u64>,
        /// The version that its sender saw; 0 if an older version of the program sent it.
        #[serde(default)]
        version: u64,
        /// Tells a request that arrives twice from another one; absent if an older version sent it.
        #[serde(default)]
        request: Option<String>,
    },
}

/// A command to a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Command {
    Stop,
    StopTurn { turn_id: TurnId },
    AbortRetry,
    RetryNow { model: Option<String> },
    Close,
    Delete,
    Enqueue { text: String, message_id: String },
    CancelQueued { message_id: String },
    Answer(Box<ApprovalAnswer>),
    Question(Box<QuestionAnswer>),
    RevokeTool { tool: String },
    ChangeRetry(Box<RetryPatch>),
}

impl Command {
    /// Whether it is meant for the turn that its sender saw, and no other.
    pub(crate) fn is_for_a_turn(&self) -> bool {
        matches!(self, Self::Stop | Self::StopTurn { .. } | Self::AbortRetry | Self::RetryNow { .. })
    }
}

/// The reply to a request.
#[allow(clippy::large_enum_variant, reason = "one at a time")]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reply {
    /// Whether the command had an effect.
    Done(bool),
    Queued(Queued),
    Cancelled(QueueCancelled),
    RetrySettings(Box<RetrySettingsState>),
    Tail(Tail),
    Questions(Vec<Question>),
    /// Another node drives the conversation.
    NotHere,
    /// The node has left: its turns may be taken over.
    Left,
    Failed {
        fault: Fault,
        message: String,
    },
}

/// Streamed text that no append contains yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tail {
    pub(crate) base: u64,
    /// Start, end and JSON of each event.
    pub(crate) events: Vec<(u64, u64, String)>,
}

impl From<Streamed> for Tail {
    fn from(streamed: Streamed) -> Self {
        let json = |json: &Bytes| String::from_utf8_lossy(json).into_owned();
        let events =
            streamed.events.iter().map(|event| (event.start.value(), event.end.value(), json(&event.json)));
        Self { base: streamed.base.0, events: events.collect() }
    }
}

impl From<Tail> for Streamed {
    fn from(tail: Tail) -> Self {
        let events = tail.events.into_iter().map(|(start, end, json)| StoredEvent {
            start: Cursor::from_value(start),
            end: Cursor::from_value(end),
            json: json.into(),
        });
        Self { base: Version(tail.base), events: events.collect() }
    }
}

impl From<Result<Self, Error>> for Reply {
    fn from(result: Result<Self, Error>) -> Self {
        result.unwrap_or_else(|error| match error {
            Error::Elsewhere { .. } | Error::Journal(JournalError::Stale { .. }) => Self::NotHere,
            error => Self::Failed { fault: error.fault(), message: error.to_string() },
        })
    }
}
