//! The journal in a Postgres database: one server, group commit.
//!
//! [`PostgresJournal`] implements the orchestrator's journal. An append is committed when it returns; appends that wait
//! at the same time share a statement. If the answer to an append is lost with its connection, the same append is sent
//! again; as it expects a version, it is stored once, and the database tells by its number that it was stored.
//!
//! One server uses a database: it holds an advisory lock, and a server that has lost the lock to another cannot write.
//!
//! [`PostgresArchive`] reads a journal beside its server.
//!
//! This crate does *not* decide how long data is kept (its user calls `drop_events`), does not share a
//! journal between servers, and knows nothing of turns beyond their saved form.

mod archive;
mod error;
mod journal;
mod keeper;
mod options;
mod pool;
mod pooler;
mod read;
mod record;
mod retention;
mod schema;
mod session;
mod state;
mod target;
mod text;
mod tls;
mod writer;

pub use archive::PostgresArchive;
pub use error::{OpenError, Place};
pub use journal::PostgresJournal;
pub use options::Options;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
