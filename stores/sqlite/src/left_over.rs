//! Repairs the write-ahead log left by a process that ended without closing it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use crate::{OpenError, lock::beside, schema::APPLICATION};

/// Offset of SQLite's application id in a file.
const APPLICATION_AT: u64 = 68;
/// Number of bytes copied at a time.
const PIECE: usize = 64 << 10;

/// Rewrites the log, byte for byte, and flushes it. Returns whether there is one.
///
/// A log that can be read is not necessarily on disk: after a failed flush, Linux marks the unwritten pages as clean,
/// and no later flush writes them. Anything appended after such a gap would be lost with it. Must be called before
/// SQLite builds on the log; being killed here changes nothing.
pub(crate) fn write_again(database: &Path) -> Result<bool, OpenError> {
    let log = beside(database, "-wal");
    if !is_ours(database).unwrap_or_default() {
        // Another program may be using it.
        return Ok(false);
    }
    match rewrite(&log) {
        Ok(length) => Ok(length > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(OpenError::Storage {
            path: database.to_owned(),
            what: format!("the log beside it, {}, cannot be written again: {error}", log.display()),
            advice: "look at the disk and at the log of the operating system; all of it is left as it was",
        }),
    }
}

/// Whether the database is marked as a journal. One that has a log is marked in its file, as it was created without a
/// log.
fn is_ours(database: &Path) -> io::Result<bool> {
    let mut id = [0; 4];
    let mut file = File::open(database)?;
    file.seek(SeekFrom::Start(APPLICATION_AT))?;
    file.read_exact(&mut id)?;
    Ok(i64::from(u32::from_be_bytes(id)) == APPLICATION)
}

fn rewrite(log: &Path) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).open(log)?;
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&piece[..length])?;
        at += length as u64;
    }
    if at > 0 {
        file.sync_all()?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::*;

    /// A database with this application id, and a log of `length` bytes.
    fn left(directory: &Path, application: i64, length: usize) -> (std::path::PathBuf, Vec<u8>) {
        let database = directory.join("journal.db");
        Connection::open(&database).unwrap().pragma_update(None, "application_id", application).unwrap();
        let log: Vec<u8> = (0..length).map(|n| (n / 7) as u8).collect();
        fs::write(beside(&database, "-wal"), &log).unwrap();
        (database, log)
    }

    #[test]
    fn a_log_is_the_same_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let (database, log) = left(directory.path(), APPLICATION, 3 * PIECE + 17);
        assert!(write_again(&database).unwrap());
        assert_eq!(fs::read(beside(&database, "-wal")).unwrap(), log);
    }

    #[test]
    fn the_log_of_another_program_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let (database, _) = left(directory.path(), 7, PIECE);
        let before = fs::metadata(beside(&database, "-wal")).unwrap().modified().unwrap();
        assert!(!write_again(&database).unwrap());
        assert_eq!(fs::metadata(beside(&database, "-wal")).unwrap().modified().unwrap(), before);
        assert!(!write_again(&directory.path().join("nowhere.db")).unwrap());
    }
}
