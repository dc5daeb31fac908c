//! The journal in one SQLite file.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;
use everturn_ports::{
    Commit, Cursor, Head, Journal, JournalError, Page, Retention, Stored, StoredEvent, Unsealed, Version,
    Window, kernel::Millis,
};
use everturn_store_rows::integer;
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use rusqlite::{Connection, OpenFlags};

use crate::{
    OpenError, error, left_over,
    lock::{self, Lock},
    query,
    reader::Reader,
    schema,
    writer::{Append, WriterThread},
};

/// Limits to a journal's disk space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLimits {
    /// Maximum size of the database file in bytes; appends that would exceed it fail. `None` = no limit. Up to 16 MiB
    /// of write-ahead log are needed in addition.
    pub max_bytes: Option<u64>,
}

/// A journal in one SQLite file, with `-wal`, `-shm` and `.lock` beside it.
///
/// Needs a tokio runtime for reading. Dropping it waits until every accepted append is on disk.
#[derive(Debug)]
pub struct SqliteJournal {
    // Dropped in this order: the last connection to close cleans up, and only then is the file free for others.
    reader: Arc<Reader>,
    writer: WriterThread,
    _lock: Arc<Lock>,
}

impl SqliteJournal {
    /// Opens the journal in this file, creating the file if there is none. Its directory must exist.
    ///
    /// # Errors
    /// When the file is in use, not a journal, from a newer version, damaged, or not writable. Then it is not changed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_within(path, FileLimits::default())
    }

    /// Opens the journal with limits to its size.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within(path: impl AsRef<Path>, limits: FileLimits) -> Result<Self, OpenError> {
        let path = lock::resolve(path.as_ref())?;
        let lock = Arc::new(Lock::take(&path)?);
        let connection = connect(&path, limits)?;
        let writer = WriterThread::start(connection, &path)
            .map_err(|cause| OpenError::Place { path: path.clone(), cause })?;
        let reader = Arc::new(Reader::new(path, lock.clone()));
        Ok(Self { reader, writer, _lock: lock })
    }

    /// Runs `read` on the committed data.
    pub(crate) async fn read_only<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.reader.read(read).await
    }

    /// The highest version of a conversation that was deleted.
    pub(crate) fn removed(&self) -> Arc<AtomicU64> {
        self.writer.removed.clone()
    }

    /// Runs `work` while nothing else writes.
    pub(crate) async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.writer.alone(work).await
    }
}

/// Databases up to this size, in bytes, are checked whenever they are opened, which takes a fraction of a second;
/// larger ones only after a process that ended without closing them.
const SOON_CHECKED: u64 = 64 << 20;

/// Page size of new files, in bytes. A commit writes whole pages, and most commits are small.
const PAGE: u32 = 1024;

/// Length of the write-ahead log, in bytes, at which its pages are copied to the database. Each page is copied once,
/// however often it was written, but after a crash, up to this much must be read and written again at the next start.
const LOG: u32 = 4 << 20;

/// The connection that writes.
fn connect(path: &Path, limits: FileLimits) -> Result<Connection, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let left_over = left_over::write_again(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    // Takes effect only while the file is empty.
    connection.pragma_update(None, "page_size", PAGE).map_err(failed)?;
    schema::migrate(&mut connection, path)?;
    configure(&connection, limits).map_err(failed)?;
    tidy(&connection).map_err(failed)?;
    if left_over || path.metadata().is_ok_and(|file| file.len() <= SOON_CHECKED) {
        check(&connection, path)?;
    }
    Ok(connection)
}

fn configure(connection: &Connection, limits: FileLimits) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    // What is deleted is overwritten. `fast` would leave what is on pages of its own, as long messages are.
    connection.pragma_update(None, "secure_delete", "on")?;
    let page: u32 = connection.query_row("SELECT * FROM pragma_page_size", [], |row| row.get(0))?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG / page)?;
    if let Some(max) = limits.max_bytes {
        connection.pragma_update(None, "max_page_count", integer(max.div_ceil(u64::from(page))))?;
    }
    Ok(())
}

/// Deletes the rows of turns that no longer run, and the definitions that no unsealed turn uses.
pub(crate) fn tidy(connection: &Connection) -> rusqlite::Result<()> {
    let sealed =
        "DELETE FROM running WHERE version <> (SELECT version FROM conversation WHERE key = conversation)";
    connection.execute(sealed, [])?;
    let unused = "DELETE FROM definition WHERE key NOT IN (SELECT definition FROM running)
        AND NOT EXISTS (SELECT 1 FROM conversation WHERE definition = definition.key)";
    connection.execute(unused, []).map(drop)
}

/// Checks the database for damage.
fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)) {
        Ok(found) if found == "ok" => Ok(()),
        // The finding has several lines; an error message has one.
        Ok(found) => Err(OpenError::Damaged { path: path.to_owned(), found: found.replace('\n', " ") }),
        Err(error) => Err(OpenError::sqlite(path, &error)),
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        let (append, answered) = Append::new(id.clone(), expected, commit);
        self.writer.append(append).await?;
        answered.await.unwrap_or_else(|_| Err(error::unanswered(self.writer.path())))
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        let id = id.clone();
        self.reader.read(move |connection| query::load(connection, &id)).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let id = id.clone();
        self.reader.read(move |connection| query::chunks(connection, &id, window)).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let id = id.clone();
        self.reader.read(move |connection| query::events(connection, &id, after, limit)).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        let id = id.clone();
        self.reader.read(move |connection| query::metrics(connection, &id)).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.reader.read(move |connection| query::conversations(connection, &page)).await
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        let id = id.clone();
        let sql = "UPDATE conversation SET title = ?2 WHERE id = ?1";
        self.alone(move |connection| Ok(connection.execute(sql, [id.as_str(), &title])? > 0)).await
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        self.delete(id).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        self.remove_ephemeral(idle_since).await
    }

    async fn drop_events(&self, retention: Retention) -> Result<usize, JournalError> {
        self.drop_old_events(retention).await
    }

    async fn give_back(&self) -> Result<u64, JournalError> {
        self.shrink().await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.reader.read(move |connection| query::unsealed(connection, before)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_is_flushed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        let _lock = Lock::take(&path).unwrap();
        let connection = connect(&path, FileLimits::default()).unwrap();
        let setting =
            |name| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        assert_eq!(setting("journal_mode").unwrap(), "wal".to_owned().into());
        assert_eq!(setting("synchronous").unwrap(), 2.into(), "2 is full");
        assert_eq!(setting("page_size").unwrap(), i64::from(PAGE).into());
        assert_eq!(setting("wal_autocheckpoint").unwrap(), 4096.into(), "4 MiB");
    }

    #[test]
    fn a_file_with_larger_pages_keeps_them_and_its_log_is_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        let earlier = Connection::open(&path).unwrap();
        earlier.execute_batch("PRAGMA page_size = 4096; PRAGMA journal_mode = wal; VACUUM").unwrap();
        drop(earlier);
        let _lock = Lock::take(&path).unwrap();
        let connection = connect(&path, FileLimits { max_bytes: Some(1 << 20) }).unwrap();
        let setting = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(["page_size", "wal_autocheckpoint", "max_page_count"].map(setting), [4096, 1024, 256]);
    }
}
