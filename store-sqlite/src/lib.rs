//! The embedded durable journal: one SQLite file, one writer, group commit.
//!
//! [`SqliteJournal`] implements the orchestrator's journal. An append is on the disk when it returns; appends that
//! wait at the same time share one flush. A file belongs to one open journal at a time; [`SqliteArchive`] looks into it
//! meanwhile.
//!
//! This crate does *not* decide what is kept for how long ([`SqliteJournal::compact`] is called by someone), knows
//! nothing of turns beyond their saved form, and is no journal for several processes.

mod archive;
mod error;
mod journal;
mod left_over;
mod lock;
mod query;
mod reader;
mod record;
mod retention;
mod run;
mod schema;
mod state;
mod writer;

pub use archive::SqliteArchive;
pub use error::OpenError;
pub use journal::{FileLimits, SqliteJournal};
pub use lock::files;
pub use retention::Retention;
