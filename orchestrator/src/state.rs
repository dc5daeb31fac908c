//! Documents outside the journal.

mod guard;
mod saver;

use everturn_wire::ConversationId;

pub use everturn_ports::{MemoryState, StateStore};

pub(crate) use self::{guard::GuardedState, saver::save_changes};
use crate::JournalError;

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

/// Deletes the documents of a conversation that is removed.
///
/// # Errors
/// When the store fails; some may be deleted.
pub async fn delete_documents(state: &dyn StateStore, id: &ConversationId) -> Result<(), JournalError> {
    for document in [Document::RetrySettings, Document::AllowedTools, Document::ModelSettings] {
        let name = document.name_of(id);
        // Most have none, and a deletion may cost more than reading: NATS keeps a marker of each.
        if state.read(&name).await?.is_some() {
            state.delete(&name).await?;
        }
    }
    Ok(())
}
