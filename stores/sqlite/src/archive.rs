//! Read-only access to a journal's file beside the process that writes it.

use std::{path::Path, path::PathBuf, sync::Arc};

use everturn_ports::{Cursor, Head, JournalError, Page, Stored, StoredEvent, Window};
use everturn_wire::{ConversationId, StoredChunk};
use rusqlite::{Connection, OpenFlags};

use crate::{OpenError, error, lock, query, schema};

/// Read-only access to a journal's file. It takes no lock, so a server may keep writing; each call sees everything
/// committed before it. Calls block the thread.
#[derive(Debug)]
pub struct SqliteArchive {
    path: PathBuf,
    connection: Connection,
}

impl SqliteArchive {
    /// Opens the file for reading. It is neither created nor migrated to a newer format.
    ///
    /// # Errors
    /// When there is no such file, when it is not a journal or is damaged, or when this version cannot read its format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = lock::resolve(path.as_ref())?;
        let failed = |error: rusqlite::Error| OpenError::sqlite(&path, &error);
        path.metadata().map_err(|cause| OpenError::Place { path: path.clone(), cause })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(failed)?;
        schema::check(&connection, &path)?;
        Ok(Self { path, connection })
    }

    /// All conversations, most recent activity first.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn conversations(&self) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.told(query::conversations(&self.connection, &Page::default()))
    }

    /// A conversation's head and its unsealed turn; `None` if there is no conversation with this id.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.told(query::load(&self.connection, id))
    }

    /// A window of a conversation's history, ascending.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn chunks(&self, id: &ConversationId, window: Window) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.told(query::chunks(&self.connection, id, window))
    }

    /// A conversation's events that end after `after`, ascending, at most `limit`.
    ///
    /// # Errors
    /// When the storage fails.
    pub fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.told(query::events(&self.connection, id, after, limit))
    }

    fn told<T>(&self, read: rusqlite::Result<T>) -> Result<T, JournalError> {
        read.map_err(|error| error::storage("read from", &self.path, &error))
    }
}
