//! One open journal per file.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use crate::OpenError;

/// The right to use a database, given back when dropped or when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock `<path>.lock`, and makes the database's file when there is none: for its owner's eyes only.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        let lock = beside(path, ".lock");
        let place = |path: &Path, cause| OpenError::Place { path: path.to_owned(), cause };
        let file = private().open(&lock).map_err(|error| place(&lock, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path: path.to_owned(), lock }),
            Err(TryLockError::Error(error)) => return Err(place(&lock, error)),
        }
        private().open(path).map_err(|error| place(path, error))?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // To close the file is not enough: a child process that is just being started holds it, too, until it runs its own
        // program. If this fails, closing the file usually does it.
        let _ = self.file.unlock();
    }
}

/// The files of a journal, whether they are there now or not: the database, its log with its index, and its lock.
pub fn files(database: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", ".lock"].map(|suffix| beside(database, suffix))
}

/// The file of that name with `suffix` added.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The one name of a database, whichever way it was written: links and relative paths must not lead to two locks.
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
        // What a fork leaves to the child: another descriptor of the same open file.
        let inherited = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(&path), Err(OpenError::InUse { .. })));
        drop(lock);
        Lock::take(&path).unwrap();
        drop(inherited);
    }
}
