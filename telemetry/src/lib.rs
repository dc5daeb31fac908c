//! Turns as OpenTelemetry traces, sent over OTLP/HTTP.
//!
//! [`Traces`] is an [`Observer`](everturn_orchestrator::Observer). A turn is a span, with a child for each step, which has
//! one for each attempt (a request to the provider, with `http.request.resend_count`); tool calls are children of the
//! turn. A wait before a retry is an event of its step. Names and attributes are those of OpenTelemetry's GenAI and HTTP
//! conventions; no message, argument or result is sent.
//!
//! A span is exported when it ends. Ids are derived from those of the turn, so a turn that another process finishes after a
//! restart stays one trace; a step that was interrupted begins with the first attempt of the process that ends it.
//!
//! This crate does *not* measure anything itself and knows no provider.

mod export;
mod id;
mod name;
mod span;
mod traces;

pub use export::{ExportError, Settings};
pub use traces::Traces;
