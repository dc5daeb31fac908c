//! Ensures that each file is opened by one journal only.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    io, mem,
    path::{Path, PathBuf},
};

use crate::OpenError;

/// An exclusive lock on a database, released when dropped or when the process ends, however it ends.
///
/// It is on the lock file, which is there before the database, and on Linux also on the database itself, which may have several
/// names (hard links). Elsewhere that lock would conflict with SQLite's own.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// Open as long as SQLite uses the file: closing any descriptor of it would give up SQLite's locks.
    database: File,
}

/// Whether the lock of a whole file is independent of SQLite's locks of parts of it.
const LOCKS_DATABASE: bool = cfg!(target_os = "linux");

impl Lock {
    /// Takes the lock `<path>.lock`, and creates the database's file if there is none, accessible only to its owner.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        let lock = beside(path, ".lock");
        let place = |path: &Path, cause| OpenError::Place { path: path.to_owned(), cause };
        let file = private().open(&lock).map_err(|error| place(&lock, error))?;
        if !lock_file(&file).map_err(|error| place(&lock, error))? {
            return Err(OpenError::InUse { path: path.to_owned(), lock });
        }
        let database = private().open(path).map_err(|error| place(path, error))?;
        if LOCKS_DATABASE && !lock_file(&database).map_err(|error| place(path, error))? {
            // Not closed, in case this process has it open under its other name.
            mem::forget(database);
            return Err(OpenError::InUse { path: path.to_owned(), lock: path.to_owned() });
        }
        Ok(Self { file, database })
    }
}

/// Locks a file. Returns whether nobody else holds its lock.
fn lock_file(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started holds it, too, until it executes its
        // own program. If unlocking fails, closing the file usually suffices.
        let _ = self.database.unlock();
        let _ = self.file.unlock();
    }
}

/// The files of a journal, whether or not they exist: the database, its write-ahead log with index, and its lock file.
pub fn files(database: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", ".lock"].map(|suffix| beside(database, suffix))
}

/// The path with `suffix` appended.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The canonical path of a database: links and relative paths must not lead to two locks.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let place = |cause| OpenError::Place { path: path.to_owned(), cause };
    if path.exists() {
        return path.canonicalize().map_err(place);
    }
    let name = path.file_name().ok_or_else(|| place(std::io::ErrorKind::IsADirectory.into()))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(directory.canonicalize().map_err(place)?.join(name))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_given_back_though_a_child_process_still_has_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        let lock = Lock::take(&path).unwrap();
        // What a child inherits in a fork: another descriptor of the same open file.
        let inherited = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(&path), Err(OpenError::InUse { .. })));
        drop(lock);
        Lock::take(&path).unwrap();
        drop(inherited);
    }
}
