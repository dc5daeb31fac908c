//! Reading a journal, beside the server that writes it.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_ports::{
    Commit, Cursor, Head, Journal, JournalError, Page, Stored, StoredEvent, Unsealed, Version, Window,
    kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use futures_util::{FutureExt as _, future::BoxFuture};

use crate::{
    OpenError, Options,
    error::Failure,
    pool::{Kind, Pool},
    pooler, read, schema,
    session::Session,
    target::Target,
};

/// A read-only view of a journal, which a server may be writing. Appends are refused.
pub struct PostgresArchive {
    pool: Arc<Pool>,
}

impl PostgresArchive {
    /// Connects to a database that has a journal. Nothing in it is changed, and no lock is taken.
    ///
    /// # Errors
    /// When the database cannot be reached, refuses the login, has no journal yet, or one of a newer version.
    pub async fn open(options: &Options) -> Result<Self, OpenError> {
        let target = Arc::new(Target::new(options)?);
        let session = target.connect_within(options.connect_within).await?;
        pooler::refuse(&session, &target, options.connect_within).await?;
        schema::check_written(&session, &target.place).await?;
        Ok(Self::over(Arc::new(Pool::new(target, options.give_up_after))))
    }

    pub(crate) fn over(pool: Arc<Pool>) -> Self {
        Self { pool }
    }

    /// Reads from the committed data.
    async fn read<T: Send + 'static>(
        &self,
        read: impl Fn(Arc<Session>) -> BoxFuture<'static, Result<T, Failure>> + Send + Sync + 'static,
    ) -> Result<T, JournalError> {
        self.pool.run(Kind::Read, read).await
    }
}

impl std::fmt::Debug for PostgresArchive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresArchive").finish_non_exhaustive()
    }
}

#[async_trait]
impl Journal for PostgresArchive {
    async fn append(&self, _: &ConversationId, _: Version, _: Commit) -> Result<Version, JournalError> {
        Err(JournalError::Refused("this is a read-only view of a journal".to_owned()))
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        let id = id.clone();
        self.read(move |session| {
            let id = id.clone();
            async move { read::load(&session, &id).await }.boxed()
        })
        .await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let id = id.clone();
        self.read(move |session| {
            let id = id.clone();
            async move { read::chunks(&session, &id, window).await }.boxed()
        })
        .await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let id = id.clone();
        self.read(move |session| {
            let id = id.clone();
            async move { read::events(&session, &id, after, limit).await }.boxed()
        })
        .await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        let id = id.clone();
        self.read(move |session| {
            let id = id.clone();
            async move { read::metrics(&session, &id).await }.boxed()
        })
        .await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.read(move |session| {
            let page = page.clone();
            async move { read::conversations(&session, &page).await }.boxed()
        })
        .await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.read(move |session| async move { read::unsealed(&session, before).await }.boxed()).await
    }
}
