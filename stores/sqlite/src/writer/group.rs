//! Group commit: appends that wait at the same time share one flush.

use std::path::Path;

use everturn_ports::{JournalError, Version};
use rusqlite::{Connection, TransactionBehavior};

use super::append::{Append, Known};
use crate::error;

type Answer = Result<Version, JournalError>;

/// Commits the appends together and answers each. If that fails, nothing was saved, and each is tried alone, so that
/// only those that cannot be written fail. A failed flush is not retried: it is unknown whether the appends were saved,
/// and their callers must be told so. The next commit overwrites the same part of the log.
pub(super) fn settle(connection: &mut Connection, path: &Path, group: Vec<Append>, known: &mut Known) {
    let result = commit(connection, &group, known);
    if result.is_err() {
        known.definition.forget();
    }
    match result {
        Ok(answers) => {
            for (append, answer) in group.into_iter().zip(answers) {
                append.answer(answer);
            }
        }
        Err(error) if group.len() < 2 || error::is_flush(&error) => {
            for append in group {
                append.answer(Err(error::storage("append to", path, &error)));
            }
        }
        Err(_) => {
            for append in group {
                settle(connection, path, vec![append], known);
            }
        }
    }
}

fn commit(connection: &mut Connection, group: &[Append], known: &mut Known) -> rusqlite::Result<Vec<Answer>> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    // Completes a rollback that failed earlier.
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let answers = group.iter().map(|append| append.write(&transaction, known)).collect::<Result<_, _>>()?;
    transaction.commit()?;
    Ok(answers)
}
