//! The HTTP transport: REST, NDJSON and server-sent events over the orchestrator.
//!
//! [`router`] serves every call; events leave as the bytes that were serialized once for everyone, at the pace at which
//! the client takes them. A client that goes away never touches a turn. [`Guard`] decides who is let in at all, for this
//! router and whatever else the server puts beside it. [`serve`] accepts the connections, and ends those that do nothing.
//!
//! Below `/v1` it speaks OpenAI's Chat Completions API, below `/api/chat` that of the AI SDK's
//! `useChat` ([`router_with_sockets`]: also over a WebSocket), at `/ag-ui` AG-UI, and at `/copilotkit` what CopilotKit asks its
//! runtime for.
//!
//! This crate does *not* decide anything about a turn, serve the page or terminate TLS.

mod ag_ui;
mod ai_sdk;
mod answer;
mod api;
mod body;
mod call;
mod chat_client;
mod connection;
mod events;
mod guard;
mod limits;
mod metrics;
mod openai;
mod path;
mod query;
mod refusal;
mod relay;

pub use api::{router, router_with_sockets};
pub use connection::{ConnectionLimits, serve};
pub use guard::{Access, AccessError, Guard};
pub use limits::CallLimits;
pub use metrics::{Metrics, MetricsError};
