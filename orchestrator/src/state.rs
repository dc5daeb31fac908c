//! The port for what all conversations share.

mod saver;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use crate::JournalError;
pub(crate) use saver::save_changes;

/// Keeps small documents by name, which a later process finds again: what all conversations share, and what belongs to one
/// of them and is not in its journal. The latter have names that begin with `conversation/ID/`: who deletes a conversation
/// deletes them, too.
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

    /// Drops the document of that name, if there is one. Durable when it returns.
    ///
    /// # Errors
    /// When the store fails; then it is still there.
    async fn delete(&self, name: &str) -> Result<(), JournalError>;
}

/// Documents that a [`MemoryState`] takes.
const MAX_DOCUMENTS: usize = 10_000;

/// A store that lasts as long as the process. Takes at most 10,000 documents.
#[derive(Debug, Default)]
pub struct MemoryState(Mutex<BTreeMap<String, String>>);

impl MemoryState {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StateStore for MemoryState {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        Ok(self.lock().get(name).cloned())
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        let mut documents = self.lock();
        if documents.len() >= MAX_DOCUMENTS && !documents.contains_key(name) {
            let why = format!(
                "{MAX_DOCUMENTS} documents are in memory already: delete some, or use a durable store"
            );
            return Err(JournalError::Refused(why));
        }
        documents.insert(name.to_owned(), json);
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        self.lock().remove(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_takes_so_many_documents_and_forgets_what_is_deleted() {
        let state = MemoryState::new();
        for number in 0..MAX_DOCUMENTS {
            state.write(&number.to_string(), "{}".to_owned()).await.unwrap();
        }
        assert!(matches!(state.write("more", String::new()).await, Err(JournalError::Refused(_))));
        state.write("7", "[]".to_owned()).await.unwrap();
        assert_eq!(state.read("7").await.unwrap().as_deref(), Some("[]"));
        state.delete("7").await.unwrap();
        assert_eq!(state.read("7").await.unwrap(), None);
        state.write("more", String::new()).await.unwrap();
    }
}
