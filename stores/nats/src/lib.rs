//! The journal on NATS JetStream: one message per append, shared by several processes.
//!
//! [`NatsJournal`] implements the orchestrator's journal. All conversations are in one stream, each on a subject of its
//! own. An append is one message that is stored only if the conversation's last message is still the expected one; its
//! version is that message's sequence in the stream. If the answer to an append is lost, the same append is sent again
//! until the stream shows whether it was stored.
//!
//! What is acknowledged is as durable as the servers are configured: JetStream flushes to disk every two minutes unless
//! its `sync_interval` is `always`.
//!
//! This crate does *not* decide who drives a turn or how long events are kept, and knows nothing of turns beyond their
//! saved form.

mod append;
mod attempt;
mod base;
mod batch;
mod cache;
mod cluster;
mod connect;
mod contract;
mod entry;
mod error;
mod floor;
mod garbage;
mod index;
mod journal;
mod label;
mod leader;
mod marks;
mod names;
mod options;
mod parts;
mod payload;
mod read;
mod record;
mod remove;
mod rename;
mod retention;
mod server;
mod state;
mod stray;
mod stream;
mod title;
mod view;
mod walk;

pub use error::ConnectError;
pub use journal::NatsJournal;
pub use names::{Names, conversation_of, token};
pub use options::{Login, Options, Tls};
pub use state::NatsState;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
