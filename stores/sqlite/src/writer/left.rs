//! Rows of turns that no longer run: removed together with the next write, which writes that page anyway.

use rusqlite::{Connection, Result};

/// Number of rows at which they are removed without waiting for the next write.
const MOST: usize = 64;

/// Conversations whose turn ran until it was sealed or began to wait. Entries lost here because a transaction failed or
/// the process ended are removed when the file is opened.
#[derive(Debug, Default)]
pub(super) struct Left(Vec<i64>);

impl Left {
    /// Adds a conversation whose turn no longer runs.
    pub(super) fn add(&mut self, on: &Connection, key: i64) -> Result<()> {
        self.0.push(key);
        if self.0.len() < MOST { Ok(()) } else { self.remove(on) }
    }

    /// Removes their rows, except where another turn runs by now.
    pub(super) fn remove(&mut self, on: &Connection) -> Result<()> {
        let sql = "DELETE FROM running WHERE conversation = ?1
            AND version <> (SELECT version FROM conversation WHERE key = ?1)";
        for key in self.0.drain(..) {
            on.prepare_cached(sql)?.execute([key])?;
        }
        Ok(())
    }
}
