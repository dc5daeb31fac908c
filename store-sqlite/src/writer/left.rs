//! Rows of turns that do not run any more: removed along with the next one that is written, as that page is written then.

use rusqlite::{Connection, Result};

/// So many are removed at once, whatever is written.
const MOST: usize = 64;

/// Conversations whose turn ran until it was sealed or began to wait. What is forgotten here, as a transaction failed or the
/// process ended, is removed when the file is opened.
#[derive(Debug, Default)]
pub(super) struct Left(Vec<i64>);

impl Left {
    /// Adds a conversation whose turn does not run.
    pub(super) fn add(&mut self, on: &Connection, key: i64) -> Result<()> {
        self.0.push(key);
        if self.0.len() < MOST { Ok(()) } else { self.remove(on) }
    }

    /// Removes the rows of all of them, unless another turn runs there by now.
    pub(super) fn remove(&mut self, on: &Connection) -> Result<()> {
        let sql = "DELETE FROM running WHERE conversation = ?1
            AND version <> (SELECT version FROM conversation WHERE key = ?1)";
        for key in self.0.drain(..) {
            on.prepare_cached(sql)?.execute([key])?;
        }
        Ok(())
    }
}
