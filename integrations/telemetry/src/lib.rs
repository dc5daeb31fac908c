//! Exports turns as OpenTelemetry traces over OTLP/HTTP.
//!
//! [`Traces`] is an [`Observer`](everturn_orchestrator::Observer). Each turn is a span with a child per step, and each
//! step has a child per attempt (a request to the provider, with `http.request.resend_count`). Tool calls are children
//! of the turn. A wait before a retry is an event of its step. Names and attributes follow OpenTelemetry's GenAI and
//! HTTP conventions.
//!
//! The content of messages is exported only if asked for: [`Settings::message_content`] and [`Traces::with_content`].
//! Each attribute with content is JSON of at most 16 KiB. Images and `data:` URLs are replaced by their type and size.
//!
//! A span is exported when it ends. Ids are derived from the turn's id, so a turn finished by another process after a
//! restart remains one trace. The span of an interrupted step begins with the first attempt of the process that ends
//! it.
//!
//! This crate does *not* measure anything itself, and does not know any provider.

mod content;
mod export;
mod id;
mod name;
mod span;
mod traces;

pub use content::Redact;
pub use export::{ExportError, Settings};
pub use traces::Traces;
