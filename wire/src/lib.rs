//! The wire format: everything that crosses a process boundary, as serde types.
//!
//! All of it is JSON with camelCase fields and kebab-case `type` tags. Unknown values are absent, never null; only a
//! [`RetryPatch`] has nulls, which reset a field. Times are epoch milliseconds, durations are milliseconds, and
//! integers are below 2^53. Readers ignore unknown fields. An unknown command type is answered with an error, never
//! dropped.
//!
//! This crate does *not* make decisions or do I/O, and depends on neither the kernel nor the transports. The feature
//! `schema` gives every type a JSON Schema, from which the TypeScript, OpenAPI and AsyncAPI documents are generated.
//! [`document`] contains them as text without that feature.

#![no_std]

extern crate alloc;

mod approval;
mod bound;
mod caller;
mod chunk;
mod command;
pub mod document;
mod event;
mod export;
mod failure;
mod http;
mod id;
mod image;
mod message;
mod model_settings;
mod priority;
mod question;
mod report;
mod request;
mod retry_settings;
#[cfg(feature = "schema")]
mod schema;
mod trace;

pub use approval::{
    Answered, ApprovalAnswer, ApprovalMode, ApprovalRequest, ApprovalScope, Approvals, Decider, Decision,
    Revoked, Verdict,
};
pub use caller::{CallerName, InvalidCallerName};
pub use chunk::{Chunk, Echo, Message, Role, StoredChunk};
pub use command::{Command, CommandError};
pub use event::{
    AgentEvent, Because, CompactionCause, CompactionOutcome, ConversationStatus, DoneReason, ErrorReport,
    EventBody, OutputStream, QueuedMessage, RejectedImage, Reported, RetryOutcome, RetryPhase, RetryState,
    TargetRole, Usage,
};
pub use export::ExportLine;
pub use failure::{Category, Failure, Unreached};
pub use http::{
    Attempts, AuditEntry, AuditLog, CallInfo, CallOrdered, CallPhase, CallerInfo, CallerLimits, CallerList,
    Calls, ClusterNode, ClusterState, ConversationList, ConversationState, ConversationSummary, ErrorBody,
    FailedAttempt, FoundPassage, Health, HistoryWindow, MadeToken, ModelInfo, Models, NewCaller, NewToken,
    QueueCancelled, QueueRequest, Queued, RenameRequest, Renamed, Retried, RetryControl, RetryNowRequest,
    RetryRequest, SendRequest, Stopped, TargetState, Targets, ToolAnnotations, ToolInfo, ToolPolicy,
    ToolSourceInfo, ToolSourceLogin, ToolSourceStatus, Tools, TurnMetrics, TurnMetricsList, UsageKey,
    UsageReport, UsageRow,
};
pub use id::{ConversationId, InvalidId, StepId, TurnId};
pub use image::Image;
pub use message::{DEFAULT_WORKSPACE, ServerMessage};
pub use model_settings::ModelSettings;
pub use priority::Priority;
pub use question::{
    FieldKind, FieldOption, Question, QuestionAction, QuestionAnswer, QuestionField, QuestionKind,
    QuestionOutcome, SettledQuestion,
};
pub use report::{FinalReport, ForcedBy, RequiredReport};
pub use request::{CallerCall, CallerTool, Parameters, ResponseFormat, ToolChoice};
pub use retry_settings::{
    AfterContent, Change, FallbackChains, InvalidRetrySettings, OnQuota, RetryPatch, RetryPreset,
    RetrySettings, RetrySettingsState, RouteRevert,
};
#[cfg(feature = "schema")]
pub use schema::{asyncapi, generated, json_schema, openapi, typescript};
pub use serde_json::Value;
pub use trace::TraceContext;
