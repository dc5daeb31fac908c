//! The HTTP transport: REST, NDJSON and server-sent events over the orchestrator.
//!
//! [`router`] serves all calls. Events are sent as bytes that were serialized once for all clients, at the client's
//! pace. A client that disconnects never affects a turn. [`Guard`] applies the access rules to this router and to
//! whatever else the server adds. [`serve`] accepts connections, and closes idle ones; [`serve_tls`]
//! encrypts them.
//!
//! Calls at a vendor's own paths are passed through to a provider, unchanged. This crate also implements OpenAI's Chat
//! Completions API below `/v1`, the protocol of the AI SDK's `useChat` below `/api/chat` (also over a WebSocket, with
//! [`router_with_sockets`]), AG-UI at `/ag-ui`, and the routes of CopilotKit's runtime below `/copilotkit`.
//!
//! This crate does *not* make decisions about turns, or serve the page.

mod ag_ui;
mod ai_sdk;
mod answer;
mod api;
mod body;
mod call;
mod chat_client;
mod connection;
mod control;
mod events;
mod export;
mod guard;
mod limits;
mod metrics;
mod models;
mod openai;
mod pass;
mod path;
mod query;
mod refusal;
mod relay;
mod response_headers;
mod router;

pub use connection::{Certificate, CertificateError, ConnectionLimits, Peer, serve, serve_tls};
pub use control::read_span;
pub use guard::{Access, AccessError, Asked, Callers, Follower, Guard, KnownCaller, TokenHash};
pub use limits::CallLimits;
pub use metrics::{Metrics, MetricsError};
pub use router::{router, router_with_sockets};
