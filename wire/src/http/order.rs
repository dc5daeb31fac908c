//! What is answered to orders: stop, retry, queue.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{ConversationId, QueuedMessage, TurnId};

/// Response of `POST /conversations/:id/stop` and `/close`, and of `DELETE /conversations/:id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Stopped {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether a turn was running.
    pub aborted_turn: bool,
}

/// Response of `POST /conversations/:id/retry/abort` and `/retry/now`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryControl {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether there was a retry to skip to or cancel: a waiting one or, for `abort`, one in phase `asking`.
    pub was_retrying: bool,
}

/// Response of `POST /conversations/:id/retry` and `POST /conversations/:id/compact`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The new turn.
    pub turn_id: TurnId,
    /// The position in the event stream at which it begins.
    pub cursor: String,
}

/// Request body of `POST /conversations/:id/queue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueueRequest {
    /// The user message.
    pub text: String,
    /// An id chosen by the client, used to cancel the message; the server creates one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

/// Response of `POST /conversations/:id/queue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// True if no turn was running and the message started one at once.
    pub started_turn: bool,
    /// All queued messages, oldest first.
    pub queue: Vec<QueuedMessage>,
}

/// Response of `DELETE /conversations/:id/queue/:messageId`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueueCancelled {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether the message was still queued.
    pub cancelled: bool,
    /// All queued messages, oldest first.
    pub queue: Vec<QueuedMessage>,
}
