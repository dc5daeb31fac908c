//! The journal in one database.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use async_trait::async_trait;
use everturn_ports::{
    Commit, Cursor, Head, Journal, JournalError, Page, Retention, Stored, StoredEvent, Unsealed, Version,
    Window, kernel::Millis,
};
use everturn_store_rows::{Unfit, integer};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use tokio::sync::oneshot;

use crate::{
    OpenError, Options, Place, PostgresArchive,
    keeper::Keeper,
    pool::Pool,
    schema,
    target::Target,
    writer::{Append, Change, Definitions, Task, Writers, stopped},
};

/// A journal in a Postgres database, used by this process only.
///
/// Needs a tokio runtime. What was accepted when it is dropped is written by tasks of the runtime, which then give the
/// database back.
pub struct PostgresJournal {
    place: Place,
    max_append: usize,
    /// The number of the next append. Begins anywhere, so that those of different processes differ.
    appends: AtomicI64,
    writers: Writers,
    archive: PostgresArchive,
    pub(crate) pool: Arc<Pool>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) definitions: Arc<Definitions>,
}

impl PostgresJournal {
    /// Connects, takes the database for this process, and creates the schema and its tables unless they exist.
    ///
    /// # Errors
    /// When the database cannot be reached, refuses the login, is in use by another process, is not fit, or was written by
    /// a newer version. Then it is not changed.
    pub async fn open(options: &Options) -> Result<Self, OpenError> {
        let target = Arc::new(Target::new(options)?);
        let keeper = Arc::new(Keeper::take(&target, options).await?);
        let definitions = Arc::new(Definitions::default());
        let session = target.connect_within(options.connect_within).await?;
        let tidied = definitions.tidy(&session, keeper.epoch).await;
        tidied.map_err(|failure| schema::failed(&target.place, &failure))?;
        let pool = Arc::new(Pool::new(target.clone(), options.give_up_after));
        let (anywhere, _) = uuid::Uuid::new_v4().as_u64_pair();
        Ok(Self {
            place: target.place.clone(),
            max_append: options.max_append,
            appends: AtomicI64::new(anywhere.cast_signed()),
            writers: Writers::start(&target, &keeper, &definitions, options.give_up_after),
            archive: PostgresArchive::over(pool.clone()),
            pool,
            keeper,
            definitions,
        })
    }

    /// Returns where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns how many times the answer to appends was lost, so that they were sent again.
    pub fn lost_answers(&self) -> u64 {
        self.writers.lost_answers()
    }

    async fn change(
        &self,
        change: impl FnOnce(oneshot::Sender<Result<bool, JournalError>>) -> Change,
    ) -> Result<bool, JournalError> {
        let (answer, answered) = oneshot::channel();
        self.writers.send(Task::Change(change(answer))).await?;
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl fmt::Debug for PostgresJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresJournal").field("place", &self.place).finish_non_exhaustive()
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        self.keeper.expects(integer(expected.0));
        let number = self.appends.fetch_add(1, Ordering::Relaxed);
        let refused =
            |error: Unfit| JournalError::Refused(format!("conversation {id} cannot be stored: {error}"));
        let (append, answered) = Append::new(id.clone(), expected, number, &commit).map_err(refused)?;
        drop(commit);
        if append.bytes > self.max_append {
            let (bytes, limit) = (append.bytes as u64, self.max_append as u64);
            return Err(JournalError::TooLarge { bytes, limit });
        }
        self.writers.send(Task::Append(Box::new(append))).await?;
        answered.await.unwrap_or_else(|_| {
            Err(JournalError::Unknown(
                "the journal has stopped: restart the process and look in its log for why".to_owned(),
            ))
        })
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.archive.load(id).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.archive.chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.archive.events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.archive.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.archive.conversations(page).await
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        let id = id.clone();
        self.change(|answer| Change::Rename { id, title, answer }).await
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        let id = id.clone();
        self.change(|answer| Change::Remove { id, answer }).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        self.remove_ephemeral(idle_since).await
    }

    async fn drop_events(&self, retention: Retention) -> Result<usize, JournalError> {
        self.compact(retention).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.archive.unsealed(before).await
    }
}
