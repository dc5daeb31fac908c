//! Request and response bodies of the HTTP API.

mod attempt;
mod call;
mod caller;
mod retry;
mod send;
mod tool;
mod usage;

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    ApprovalMode, ApprovalRequest, CallerCall, Category, ConversationId, ConversationStatus, DoneReason,
    FinalReport, Question, QueuedMessage, RetryState, Role, StoredChunk, TurnId, Usage,
};
pub use attempt::{Attempts, FailedAttempt};
pub use call::{CallInfo, CallOrdered, CallPhase, Calls};
pub use caller::{
    AuditEntry, AuditLog, CallerInfo, CallerLimits, CallerList, MadeToken, NewCaller, NewToken,
};
pub use retry::{RetryNowRequest, RetryRequest};
pub use send::SendRequest;
pub use tool::{
    ToolAnnotations, ToolInfo, ToolPolicy, ToolSourceInfo, ToolSourceLogin, ToolSourceStatus, Tools,
};
pub use usage::{UsageKey, UsageReport, UsageRow};

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

/// Metrics of one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnMetrics {
    /// The turn.
    pub turn_id: TurnId,
    /// Token counts, summed over its steps.
    pub usage: Usage,
    /// Time from start to seal, in milliseconds; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Number of steps (model round trips).
    pub steps: u32,
    /// Input plus output tokens of its last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DoneReason>,
    /// The category of the failure that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The model that answered last, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The `seq` of its first chunk. That of a turn without chunks is one more than `lastSeq`, and the turn is listed with the
    /// windows on both sides of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seq: Option<u64>,
    /// The `seq` of its last chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    /// Time from its start to the first token shown, including waits, in milliseconds; absent if nothing was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Number of retries in all its steps; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Sum of the waits before them, in milliseconds; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Number of calls made to providers for its answer, failed ones included; without calls for summaries, and without
    /// those that a restart repeated. Absent in turns of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_calls: Option<u32>,
    /// The turn that it repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<TurnId>,
    /// Failed attempts, oldest first; only the newest 100. Absent if none is known. Not in a `HistoryWindow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_attempts: Option<Vec<FailedAttempt>>,
    /// How calls that needed a person's approval were treated; absent = they waited for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalMode>,
    /// The final report, if the turn had to end with one. In a `HistoryWindow`, without the report itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_report: Option<Box<FinalReport>>,
    /// Tool calls handed to the caller; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallerCall>,
    /// What its request set, for a turn that repeats it. Kept in journals, never sent to clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub request: Option<Box<serde_json::Value>>,
}

impl TurnMetrics {
    /// Creates metrics of which only the turn's id is known.
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
            provider_calls: None,
            retry_of: None,
            failed_attempts: None,
            final_report: None,
            approvals: None,
            calls: Vec::new(),
            request: None,
        }
    }
}

/// Response of `GET /conversations/:id/metrics`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnMetricsList {
    /// Sealed turns, oldest first.
    pub turns: Vec<TurnMetrics>,
}

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

/// Response of `GET /models`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Models {
    /// The models, each as `provider/model`; the first is the default.
    pub models: Vec<String>,
    /// Details of the models, by the same names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_info: Option<BTreeMap<String, ModelInfo>>,
}

/// Details of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Maximum number of tokens in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Maximum number of tokens in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

/// Response of `GET /cluster`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterState {
    /// The id of this server; absent if it shares its conversations with no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// All servers that share the conversations and are alive, this one included, by id.
    pub nodes: Vec<ClusterNode>,
}

/// A server that shares its conversations with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterNode {
    /// Its id, a new one at each start.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// When it started, in epoch milliseconds.
    pub started_at: u64,
    /// The number of unfinished turns that it drives or is going to wake, as of a few seconds ago.
    pub turns: u64,
    /// The models and routes that it offers, at most 100. It continues turns of other servers that use one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The MCP servers that it is configured with, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_sources: Vec<String>,
}

/// Response of `GET /targets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Targets {
    /// All targets, in the order in which they are configured.
    pub targets: Vec<TargetState>,
}

/// Whether a target can be asked at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TargetState {
    /// The target, as `provider/model`.
    pub target: String,
    /// When it can be asked again, in epoch milliseconds; absent if it can be asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// The category of the last relevant failure; absent if it can be asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
}

/// Response of `GET /health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// Always true: a server that is not healthy does not answer.
    pub ok: bool,
}

/// The body of every error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// What is wrong and what to do.
    pub error: String,
}
