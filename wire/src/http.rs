//! Bodies of the HTTP calls.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    Category, ConversationId, ConversationStatus, DoneReason, Image, QueuedMessage, RetryState, StoredChunk,
    TurnId, Usage,
};

/// Body of `POST /chat`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SendRequest {
    /// The conversation; a new one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// The user message.
    pub message: String,
    /// `credential/model`; the server's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Images that go with it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::images")]
    pub images: Option<Vec<Image>>,
    /// How hard the model should think, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Whether to be sent extension events too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<bool>,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    /// The conversation.
    pub id: ConversationId,
    /// Epoch milliseconds.
    pub created_at: u64,
    /// Epoch milliseconds of its latest chunk.
    pub last_activity_at: u64,
    /// The beginning of its first message.
    pub title: String,
    /// Its status.
    pub status: ConversationStatus,
    /// The workspace it belongs to.
    pub workspace_id: String,
}

/// Answer of `GET /conversations`: newest activity first.
pub type ConversationList = Vec<ConversationSummary>;

/// Answer of `GET /conversations/:id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryWindow {
    /// Ascending by `seq`.
    pub chunks: Vec<StoredChunk>,
    /// The last chunk's `seq`; the asked-for `sinceSeq` when there is none.
    pub latest_seq: u64,
    /// True where the window was cut by a limit of the server and there are more chunks after its last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
    /// The sealed turns that these chunks are of, oldest first; absent where none of them is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Vec<TurnMetrics>>,
}

/// Answer of `GET /conversations/:id/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConversationState {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether a turn runs or waits.
    pub is_active: bool,
    /// Its status.
    pub status: ConversationStatus,
    /// Whether failures are retried by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_retry: Option<bool>,
    /// The `seq` of the running turn's first chunk: what of the history a replay of the turn shows again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_seq: Option<u64>,
    /// The chain of retries that the running step is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryState>,
}

/// One turn's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnMetrics {
    /// The turn.
    pub turn_id: TurnId,
    /// Sum over its steps.
    pub usage: Usage,
    /// From start to seal, in milliseconds; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Model round trips.
    pub steps: u32,
    /// Input plus output tokens of its last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DoneReason>,
    /// What kind of failure ended it, when one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The model that answered last, as `credential/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The `seq` of its first chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seq: Option<u64>,
    /// The `seq` of its last chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    /// From its start to the first token shown, waits included, in milliseconds; absent where nothing was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Retries of all its steps; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The sum of the waits before them, in milliseconds; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// The turn that it tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<TurnId>,
}

impl TurnMetrics {
    /// Those of a turn of which nothing is known but its id.
    pub fn new(turn_id: TurnId) -> Self {
        Self {
            turn_id,
            usage: Usage::default(),
            duration_ms: None,
            steps: 0,
            context_size: None,
            reason: None,
            category: None,
            model: None,
            first_seq: None,
            last_seq: None,
            first_token_ms: None,
            retries: None,
            waited_ms: None,
            retry_of: None,
        }
    }
}

/// Answer of `GET /conversations/:id/metrics`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnMetricsList {
    /// Sealed turns, oldest first.
    pub turns: Vec<TurnMetrics>,
}

/// Answer of `POST /conversations/:id/stop` and `/close`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Stopped {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether a turn was running.
    pub aborted_turn: bool,
}

/// Answer of `POST /conversations/:id/retry/abort` and `/retry/now`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryControl {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether there was a retry to skip to or to end: one that waits, or, for `abort`, one that is being asked.
    pub was_retrying: bool,
}

/// Body of `POST /conversations/:id/retry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryRequest {
    /// The turn to try again: the conversation's last one, which ended in an error or was stopped.
    pub turn_id: TurnId,
}

/// Answer of `POST /conversations/:id/retry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The turn that has begun.
    pub turn_id: TurnId,
    /// The place in the event stream where it begins.
    pub cursor: String,
}

/// Body of `POST /conversations/:id/queue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueueRequest {
    /// The user message.
    pub text: String,
    /// A name of the client's choice for cancelling it; the server makes one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

/// Answer of `POST /conversations/:id/queue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether nothing was running, so that the message started a turn at once.
    pub started_turn: bool,
    /// All that waits now, oldest first.
    pub queue: Vec<QueuedMessage>,
}

/// Answer of `DELETE /conversations/:id/queue/:messageId`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueueCancelled {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether the message was still waiting.
    pub cancelled: bool,
    /// All that waits now, oldest first.
    pub queue: Vec<QueuedMessage>,
}

/// Answer of `GET /models`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Models {
    /// Each as `credential/model`; the first is the default.
    pub models: Vec<String>,
    /// What is known about them, by the same names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_info: Option<BTreeMap<String, ModelInfo>>,
}

/// What is known about a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The most tokens a request may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most tokens an answer may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

/// Answer of `GET /health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// Always true: a server that cannot serve does not answer.
    pub ok: bool,
}

/// Every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// What is wrong and what to do.
    pub error: String,
}
