//! A store whose calls take no virtual time, however long they really take.

use std::{future::Future, sync::Arc};

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, Page, StateStore, Stored, StoredEvent, Unsealed, Version,
    Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use tokio::{runtime::Handle, task::spawn_blocking};

/// Forwards each call to a blocking thread of the runtime, during which a paused clock does not advance.
pub(super) struct Unhurried<S: ?Sized>(pub(super) Arc<S>);

async fn blocking<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    let runtime = Handle::current();
    spawn_blocking(move || runtime.block_on(call)).await.expect("a store does not panic")
}

#[async_trait]
impl Journal for Unhurried<dyn Journal> {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        let (store, id) = (self.0.clone(), id.clone());
        blocking(async move { store.append(&id, expected, commit).await }).await
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        let (store, id) = (self.0.clone(), id.clone());
        blocking(async move { store.load(&id).await }).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let (store, id) = (self.0.clone(), id.clone());
        blocking(async move { store.chunks(&id, window).await }).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let (store, id) = (self.0.clone(), id.clone());
        blocking(async move { store.events(&id, after, limit).await }).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        let (store, id) = (self.0.clone(), id.clone());
        blocking(async move { store.metrics(&id).await }).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        let store = self.0.clone();
        blocking(async move { store.conversations(page).await }).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        let store = self.0.clone();
        blocking(async move { store.drop_ephemeral(idle_since).await }).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        let store = self.0.clone();
        blocking(async move { store.unsealed(before).await }).await
    }
}

#[async_trait]
impl StateStore for Unhurried<dyn StateStore> {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        let (store, name) = (self.0.clone(), name.to_owned());
        blocking(async move { store.read(&name).await }).await
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        let (store, name) = (self.0.clone(), name.to_owned());
        blocking(async move { store.write(&name, json).await }).await
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        let (store, name) = (self.0.clone(), name.to_owned());
        blocking(async move { store.delete(&name).await }).await
    }
}
