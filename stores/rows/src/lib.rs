//! The rows in which the SQL stores keep conversations: chunks, runs of events, and figures of sealed turns.
//!
//! This crate does *not* know SQL, transactions or tables.

mod code;
mod entry;
mod json;
mod run;

pub use code::{role, role_code, status, status_code};
pub use entry::{CHUNK, Entry, RUN, SEAL, entries};
pub use json::{chunk, from_json, to_json};
pub use run::{Ids, Kept, Malformed, events};

/// A value that cannot be stored. A later attempt would fail in the same way.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// Converts a count to the integer type of SQL. Counts on the wire are below 2^53; larger values saturate.
pub fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
