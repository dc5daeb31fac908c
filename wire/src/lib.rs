//! Everything of Everturn that crosses a process boundary, as serde types.
//!
//! One dialect: JSON, camelCase fields, kebab-case `type` tags, absent rather than null for what is unknown,
//! times in epoch milliseconds, durations in milliseconds, integers below 2^53.
//! Unknown fields are ignored by every reader; an unknown command type is answered, never dropped.
//!
//! This crate does *not* decide anything, does no I/O and knows neither the kernel nor the transports.
//! With the feature `schema` every type also has a JSON Schema, from which the TypeScript, OpenAPI and AsyncAPI documents
//! are made; [`document`] has them as text without that feature.

#![no_std]

extern crate alloc;

mod bound;
mod chunk;
mod command;
pub mod document;
mod event;
mod export;
mod failure;
mod http;
mod id;
mod message;
#[cfg(feature = "schema")]
mod schema;

pub use chunk::{Chunk, Echo, Message, Role, StoredChunk};
pub use command::{Command, CommandError, Image};
pub use event::{
    AgentEvent, ConversationStatus, DoneReason, ErrorReport, EventBody, OutputStream, QueuedMessage,
    RetryOutcome, RetryPhase, RetryState, Usage, Verdict,
};
pub use export::ExportLine;
pub use failure::{Category, Failure};
pub use http::{
    ConversationList, ConversationState, ConversationSummary, ErrorBody, Health, HistoryWindow, ModelInfo,
    Models, QueueCancelled, QueueRequest, Queued, Retried, RetryControl, RetryRequest, SendRequest, Stopped,
    TurnMetrics, TurnMetricsList,
};
pub use id::{ConversationId, InvalidId, StepId, TurnId};
pub use message::{DEFAULT_WORKSPACE, ServerMessage};
#[cfg(feature = "schema")]
pub use schema::{asyncapi, generated, json_schema, openapi, typescript};
pub use serde_json::Value;
