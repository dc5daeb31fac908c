//! The port for state outside the journal.

mod saver;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use everturn_wire::ConversationId;

use crate::JournalError;
pub(crate) use saver::save_changes;

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

/// How often a change is repeated because others changed the document meanwhile.
const MAX_CHANGES: usize = 20;

/// Changes a document to what `change` returns for its content, however many others change it at the same time. Durable when
/// it returns.
///
/// # Errors
/// Those of `change`, and when the store fails; then nothing changes.
pub(crate) async fn change_document<E: From<JournalError>>(
    store: &dyn StateStore,
    name: &str,
    mut change: impl FnMut(Option<&str>) -> Result<Option<String>, E>,
) -> Result<(), E> {
    for _ in 0..MAX_CHANGES {
        let read = store.read(name).await?;
        let json = change(read.as_deref())?;
        if json == read || store.replace(name, read.as_deref(), json).await? {
            return Ok(());
        }
    }
    let why = format!("{name} was changed by others {MAX_CHANGES} times in a row: try again");
    Err(JournalError::Storage(why).into())
}

/// A document of one conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Document {
    RetrySettings,
    AllowedTools,
    ModelSettings,
}

impl Document {
    /// Returns its name.
    pub(crate) fn name_of(self, id: &ConversationId) -> String {
        let name = match self {
            Self::RetrySettings => "retry-settings",
            Self::AllowedTools => "allowed-tools",
            Self::ModelSettings => "model-settings",
        };
        format!("conversation/{id}/{name}")
    }
}

/// Deletes the documents of a conversation that is about to be removed.
///
/// # Errors
/// When the store fails; some may be deleted.
pub async fn delete_documents(state: &dyn StateStore, id: &ConversationId) -> Result<(), JournalError> {
    for document in [Document::RetrySettings, Document::AllowedTools, Document::ModelSettings] {
        state.delete(&document.name_of(id)).await?;
    }
    Ok(())
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
