//! The port for state outside the journal.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use crate::JournalError;

/// Durable storage of small named documents: state shared by all conversations, and state of one conversation that is not in
/// its journal. Names of the latter begin with `conversation/ID/`; delete them together with the conversation.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// Returns a document, if it exists.
    ///
    /// # Errors
    /// When the store fails.
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError>;

    /// Replaces a document. Durable when it returns.
    ///
    /// # Errors
    /// When the store fails; the old document is then kept.
    async fn write(&self, name: &str, json: String) -> Result<(), JournalError>;

    /// Removes a document, if it exists. Durable when it returns.
    ///
    /// # Errors
    /// When the store fails; the document is then kept.
    async fn delete(&self, name: &str) -> Result<(), JournalError>;

    /// Replaces a document, or removes it if `json` is `None`, unless its content is no longer `expected` (`None`: it does not
    /// exist). Returns whether it was replaced. Durable when it returns.
    ///
    /// Default: reads, then writes. A store that several processes share must do both at once.
    ///
    /// # Errors
    /// When the store fails; the old document is then kept.
    async fn replace(
        &self,
        name: &str,
        expected: Option<&str>,
        json: Option<String>,
    ) -> Result<bool, JournalError> {
        if self.read(name).await?.as_deref() != expected {
            return Ok(false);
        }
        match json {
            Some(json) => self.write(name, json).await?,
            None => self.delete(name).await?,
        }
        Ok(true)
    }
}

/// Maximum number of documents in a [`MemoryState`].
const MAX_DOCUMENTS: usize = 10_000;

/// An in-memory store of at most 10,000 documents.
#[derive(Debug, Default)]
pub struct MemoryState(Mutex<BTreeMap<String, String>>);

impl MemoryState {
    /// Creates an empty store.
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
        insert(&mut self.lock(), name, json)
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        self.lock().remove(name);
        Ok(())
    }

    async fn replace(
        &self,
        name: &str,
        expected: Option<&str>,
        json: Option<String>,
    ) -> Result<bool, JournalError> {
        let mut documents = self.lock();
        if documents.get(name).map(String::as_str) != expected {
            return Ok(false);
        }
        match json {
            Some(json) => insert(&mut documents, name, json)?,
            None => drop(documents.remove(name)),
        }
        Ok(true)
    }
}

fn insert(documents: &mut BTreeMap<String, String>, name: &str, json: String) -> Result<(), JournalError> {
    if documents.len() >= MAX_DOCUMENTS && !documents.contains_key(name) {
        let why =
            format!("{MAX_DOCUMENTS} documents are in memory already: delete some, or use a durable store");
        return Err(JournalError::Refused(why));
    }
    documents.insert(name.to_owned(), json);
    Ok(())
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
