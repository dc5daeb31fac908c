//! The embedded durable journal: one SQLite file, one writer, group commit.
//!
//! [`SqliteJournal`] implements the orchestrator's journal. An append is on disk when it returns; appends that wait at
//! the same time share one flush. Only one journal can have a file open at a time; [`SqliteArchive`] can read it
//! meanwhile.
//!
//! This crate does *not* decide how long data is kept (whoever calls [`drop_events`] does), knows nothing of turns beyond
//! their saved form, and does not share a journal between processes.
//!
//! [`drop_events`]: everturn_ports::Journal::drop_events

mod archive;
mod error;
mod journal;
mod left_over;
mod lock;
mod query;
mod reader;
mod record;
mod retention;
mod schema;
mod space;
mod state;
mod writer;

pub use archive::SqliteArchive;
pub use error::OpenError;
pub use journal::{FileLimits, SqliteJournal};
pub use lock::files;
