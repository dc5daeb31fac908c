//! Turns the panics of a store of documents into errors.

use std::sync::Arc;

use async_trait::async_trait;

use super::StateStore;
use crate::{JournalError, journal::guard};

/// A store whose panics become errors: it may be anyone's, and calls and what saves health and limits depend on it.
pub(crate) struct GuardedState(pub(crate) Arc<dyn StateStore>);

#[async_trait]
impl StateStore for GuardedState {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        guard(async { self.0.read(name).await }).await
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        guard(async { self.0.write(name, json).await }).await
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        guard(async { self.0.delete(name).await }).await
    }

    async fn replace(
        &self,
        name: &str,
        expected: Option<&str>,
        json: Option<String>,
    ) -> Result<bool, JournalError> {
        guard(async { self.0.replace(name, expected, json).await }).await
    }
}
