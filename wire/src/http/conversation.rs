//! Conversations: lists, histories and states.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    ApprovalRequest, ConversationId, ConversationStatus, DoneReason, Question, QueuedMessage, RetryState,
    Role, StoredChunk, TurnMetrics,
};

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    /// The conversation.
    pub id: ConversationId,
    /// When it was created, in epoch milliseconds.
    pub created_at: u64,
    /// When its latest chunk was added, in epoch milliseconds.
    pub last_activity_at: u64,
    /// The beginning of the first message.
    pub title: String,
    /// Its status.
    pub status: ConversationStatus,
    /// The workspace it belongs to.
    pub workspace_id: String,
    /// The model or route of its last turn; absent if none was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the running turn's wait ends, in epoch milliseconds; absent if it is not waiting for a moment in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<u64>,
    /// Why the last turn ended; absent while a turn runs, if there was none, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<DoneReason>,
    /// The message in which a search found its words; absent if the title has them, and in lists that are no search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage: Option<FoundPassage>,
}

/// A part of a message around what was searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FoundPassage {
    /// The `seq` of the message's chunk.
    pub seq: u64,
    /// Who said it: `user` or `assistant`.
    pub role: Role,
    /// The part around the first of the words: on one line, at most 200 characters of the message. An ellipsis (`…`) marks
    /// where more precedes or follows.
    pub text: String,
}

/// Request body of `PATCH /conversations/:id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RenameRequest {
    /// The new title: 1 to 200 characters, on one line.
    pub title: String,
}

/// Response of `PATCH /conversations/:id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Renamed {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The new title.
    pub title: String,
}

/// Response of `GET /conversations`: most recent activity first.
pub type ConversationList = Vec<ConversationSummary>;

/// Response of `GET /conversations/:id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryWindow {
    /// The chunks, in order of `seq`.
    pub chunks: Vec<StoredChunk>,
    /// The last chunk's `seq`; the requested `sinceSeq` if there are no chunks.
    pub latest_seq: u64,
    /// True if a server limit truncated the window and more chunks follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
    /// The sealed turns that these chunks belong to, oldest first; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Vec<TurnMetrics>>,
}

/// Response of `GET /conversations/:id/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConversationState {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether a turn is running or waiting.
    pub is_active: bool,
    /// Its status.
    pub status: ConversationStatus,
    /// Whether failures are retried automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_retry: Option<bool>,
    /// The `seq` of the running turn's first chunk. Chunks from here on are also in a replay of the turn's events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_seq: Option<u64>,
    /// The retry in progress, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryState>,
    /// The tool calls that wait for a person's approval; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<Vec<ApprovalRequest>>,
    /// The open questions of running tools; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<Vec<Question>>,
    /// The queued messages, oldest first; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Vec<QueuedMessage>>,
}
