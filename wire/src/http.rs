//! Request and response bodies of the HTTP API.

mod attempt;
mod call;
mod caller;
mod conversation;
mod metrics;
mod order;
mod retry;
mod send;
mod server;
mod tool;
mod usage;

use alloc::string::String;

use serde::{Deserialize, Serialize};

pub use attempt::{Attempts, FailedAttempt};
pub use call::{CallInfo, CallOrdered, CallPhase, Calls};
pub use caller::{
    AuditEntry, AuditLog, CallerInfo, CallerLimits, CallerList, MadeToken, NewCaller, NewToken,
};
pub use conversation::{
    ConversationList, ConversationState, ConversationSummary, FoundPassage, HistoryWindow, RenameRequest,
    Renamed,
};
pub use metrics::{TurnMetrics, TurnMetricsList};
pub use order::{QueueCancelled, QueueRequest, Queued, Retried, RetryControl, Stopped};
pub use retry::{RetryNowRequest, RetryRequest};
pub use send::SendRequest;
pub use server::{ClusterNode, ClusterState, Health, ModelInfo, Models, TargetState, Targets};
pub use tool::{
    ToolAnnotations, ToolInfo, ToolPolicy, ToolSourceInfo, ToolSourceLogin, ToolSourceStatus, Tools,
};
pub use usage::{UsageKey, UsageReport, UsageRow};

/// The body of every error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// What is wrong and what to do.
    pub error: String,
}
