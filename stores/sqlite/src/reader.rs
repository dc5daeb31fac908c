//! A few connections for reading, used off the runtime's threads.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_ports::JournalError;
use rusqlite::{Connection, OpenFlags};
use tokio::{
    sync::Semaphore,
    task::{self, JoinSet},
};

use crate::{error, lock::Lock};

/// Maximum number of concurrent reads; further ones wait.
const AT_ONCE: usize = 4;

/// Connections that read the committed data, beside the writer.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
    /// A read whose caller went away still uses the file.
    _lock: Arc<Lock>,
}

impl Reader {
    pub(crate) fn new(path: PathBuf, lock: Arc<Lock>) -> Self {
        Self { path, idle: Mutex::default(), places: Arc::new(Semaphore::new(AT_ONCE)), _lock: lock }
    }

    /// Runs `read` on a thread where it may block. Waits for a permit in a separate task, so that a caller that is not
    /// polled cannot keep a permit from others.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        let reader = self.clone();
        // Dropped with the caller, which cancels its wait.
        let mut turn = JoinSet::new();
        turn.spawn(async move {
            let place = reader.places.clone().acquire_owned().await;
            let work = move || {
                let _place = place;
                reader.with_connection(read)
            };
            task::spawn_blocking(work).await
        });
        match turn.join_next().await {
            Some(Ok(Ok(result))) => result.map_err(|error| error::storage("read from", &self.path, &error)),
            Some(Ok(Err(_)) | Err(_)) | None => Err(error::stopped(&self.path)),
        }
    }

    fn with_connection<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| self.connect(), Ok)?;
        let result = read(&connection);
        // After a failure, the connection itself may be broken.
        if result.is_ok() {
            self.idle().push(connection);
        }
        result
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.path, flags)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
