//! Turns the panics of a journal into errors.

use std::{panic::AssertUnwindSafe, sync::Arc};

use async_trait::async_trait;
use everturn_kernel::Millis;
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use futures_util::FutureExt as _;

use super::{
    Commit, Head, Journal, JournalError, Page, Retention, Stored, StoredEvent, Unsealed, Version, Window,
};
use crate::{cursor::Cursor, panic::panic_text};

/// Turns a panic of a store into an error.
pub(crate) async fn guard<T>(call: impl Future<Output = Result<T, JournalError>>) -> Result<T, JournalError> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|panic| {
        Err(JournalError::Storage(format!("it panicked: {}", panic_text(panic.as_ref()))))
    })
}

/// A journal whose panics become errors: it may be anyone's, and the timer and every session depend on it.
pub(crate) struct Guarded(pub(crate) Arc<dyn Journal>);

#[async_trait]
impl Journal for Guarded {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        guard(async { self.0.append(id, expected, commit).await }).await
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        guard(async { self.0.load(id).await }).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        guard(async { self.0.chunks(id, window).await }).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        guard(async { self.0.events(id, after, limit).await }).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        guard(async { self.0.metrics(id).await }).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        guard(async { self.0.conversations(page).await }).await
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        guard(async { self.0.rename(id, title).await }).await
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        guard(async { self.0.remove(id).await }).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        guard(async { self.0.drop_ephemeral(idle_since).await }).await
    }

    async fn drop_events(&self, retention: Retention) -> Result<usize, JournalError> {
        guard(async { self.0.drop_events(retention).await }).await
    }

    async fn give_back(&self) -> Result<u64, JournalError> {
        guard(async { self.0.give_back().await }).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        guard(async { self.0.unsealed(before).await }).await
    }
}
