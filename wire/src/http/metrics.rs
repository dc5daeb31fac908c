//! Metrics of turns.

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{ApprovalMode, CallerCall, Category, DoneReason, FailedAttempt, FinalReport, TurnId, Usage};

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
