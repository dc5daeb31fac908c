//! Errors: what went wrong, where, and what to do about it.

use std::{
    io,
    path::{Path, PathBuf},
};

use everturn_ports::JournalError;
use rusqlite::{Error, ErrorCode, ffi};

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or this one, has it open.
    #[error("{} is in use by another process, which holds the lock {}; stop that process, or choose another file", path.display(), lock.display())]
    InUse {
        /// The database.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// The file or its directory cannot be used.
    #[error("cannot use {}: {cause}; the file and its directory must exist and be writable for this user, or choose another file", path.display())]
    Place {
        /// What cannot be used.
        path: PathBuf,
        /// The operating system's error. Part of the message, so it is not a `source`, which would repeat it.
        cause: io::Error,
    },
    /// The file is not an Everturn journal.
    #[error("{} is not an Everturn journal but {found}: move it away, or choose another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        found: &'static str,
    },
    /// Written by a newer version.
    #[error("{} was written by a newer version of Everturn (format {found}; this one knows up to {known}): upgrade Everturn, or choose another file", path.display())]
    TooNew {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The latest format that can be read.
        known: i64,
    },
    /// Written by an older version, but opened read-only.
    #[error("{} has an older format ({found}; this version reads {known}): start an everturn server on it once, which brings it up to date", path.display())]
    TooOld {
        /// The database.
        path: PathBuf,
        /// Its format; 0 = it is empty.
        found: i64,
        /// The format that can be read.
        known: i64,
    },
    /// The file's content is inconsistent.
    #[error("{} is damaged ({found}): restore it from a backup, or move it away to begin anew", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        found: String,
    },
    /// The storage failed.
    #[error("cannot open {}: {what}; {advice}", path.display())]
    Storage {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        what: String,
        /// What to do.
        advice: &'static str,
    },
}

impl OpenError {
    pub(crate) fn sqlite(path: &Path, error: &Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Foreign { path, found: "no database at all" },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, found: error.to_string() },
            _ => Self::Storage { path, what: error.to_string(), advice: advice(error) },
        }
    }
}

/// Converts an SQLite error that occurred while `doing` something, such as "append to".
pub(crate) fn storage(doing: &str, path: &Path, error: &Error) -> JournalError {
    let what = format!("cannot {doing} {}: {error}; {}", path.display(), advice(error));
    match () {
        () if is_flush(error) => JournalError::Unknown(what),
        () if will_repeat(error) => JournalError::Refused(what),
        () => JournalError::Storage(what),
    }
}

/// Whether the same operation would fail again: the error is about the data, not the disk.
fn will_repeat(error: &Error) -> bool {
    let is_unfit = matches!(error, Error::ToSqlConversionFailure(_) | Error::InvalidParameterName(_));
    is_unfit || matches!(error.sqlite_error_code(), Some(ErrorCode::TooBig | ErrorCode::TypeMismatch))
}

/// The error when the journal's threads have ended.
pub(crate) fn stopped(path: &Path) -> JournalError {
    let path = path.display();
    JournalError::Storage(format!(
        "the journal {path} has stopped: restart the process and look in its log for why"
    ))
}

/// The error when the journal's threads ended before they answered.
pub(crate) fn unanswered(path: &Path) -> JournalError {
    match stopped(path) {
        JournalError::Storage(what) => JournalError::Unknown(what),
        other => other,
    }
}

/// Whether a flush failed; then the data may or may not be on disk.
pub(crate) fn is_flush(error: &Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

/// Whether no file can be opened at all. SQLite does not say why it could not open a file.
fn is_out_of_descriptors() -> bool {
    // `EMFILE` and `ENFILE` on Unix.
    let opened = std::env::current_exe().and_then(std::fs::File::open);
    matches!(opened.err().and_then(|error| error.raw_os_error()), Some(23 | 24))
}

fn advice(error: &Error) -> &'static str {
    match error.sqlite_error_code() {
        _ if is_flush(error) => {
            "it could not be flushed to the disk, so whether this was saved shows when the journal is opened again: \
             look at the disk and at the log of the operating system"
        }
        Some(ErrorCode::DiskFull) => {
            "nothing of this was saved: free space on its file system, or raise the size it may have"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds it: close tools that have the file open"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "the file is damaged: stop, and restore it from a backup"
        }
        Some(ErrorCode::CannotOpen) if is_out_of_descriptors() => {
            "the process is out of file descriptors: raise their limit (ulimit -n), or have it do less at once"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "make the file and its directory writable for this user"
        }
        Some(ErrorCode::SystemIoFailure) => "look at the disk and at the log of the operating system",
        Some(ErrorCode::TooBig) => "one piece is larger than SQLite can hold: send less at once",
        Some(ErrorCode::ConstraintViolation) => "a place in the conversation is taken already: load it again",
        _ => "what is stored does not fit what this version reads or writes: upgrade, or restore a backup",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_refused_again_is_told_apart_from_what_may_pass() {
        let error = |code| {
            storage("append to", Path::new("j.db"), &Error::SqliteFailure(ffi::Error::new(code), None))
        };
        for (code, is_refused) in [
            (ffi::SQLITE_TOOBIG, true),
            (ffi::SQLITE_MISMATCH, true),
            (ffi::SQLITE_FULL, false),
            (ffi::SQLITE_IOERR, false),
            (ffi::SQLITE_BUSY, false),
            (ffi::SQLITE_READONLY, false),
        ] {
            assert_eq!(matches!(error(code), JournalError::Refused(_)), is_refused, "{code}");
        }
    }
}
