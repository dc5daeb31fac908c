//! The port for what all conversations share.

use async_trait::async_trait;

use crate::JournalError;

/// Keeps what all conversations share: small documents by name, which a later process finds again.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// Returns the document of that name, if there is one.
    ///
    /// # Errors
    /// When the store fails.
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError>;

    /// Puts a document in the place of the one of that name. Durable when it returns.
    ///
    /// # Errors
    /// When the store fails; then the old one is still there.
    async fn write(&self, name: &str, json: String) -> Result<(), JournalError>;
}
