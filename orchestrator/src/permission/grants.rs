//! Grants: tools that a person allowed for an entire conversation.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock},
};

use everturn_wire::ConversationId;
use tokio::sync::Mutex;

use crate::{
    JournalError, MemoryState, StateStore,
    state::{Document, change_document},
};

/// Maximum number of grants per conversation.
pub(crate) const MAX_GRANTS: usize = 1_000;

/// The tools that a person allowed for one conversation.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// `None` = not read yet; nothing is allowed.
    tools: RwLock<Option<BTreeSet<String>>>,
    /// Held while grants are read or changed.
    changing: Mutex<()>,
}

impl Grants {
    pub(crate) fn allows(&self, tool: &str) -> bool {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.as_ref().is_some_and(|tools| tools.contains(tool))
    }

    fn is_read(&self) -> bool {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn tools(&self) -> BTreeSet<String> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    fn set(&self, tools: BTreeSet<String>) {
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Some(tools);
    }
}

/// Storage of grants.
pub(crate) struct GrantStore(Arc<dyn StateStore>);

impl Default for GrantStore {
    fn default() -> Self {
        Self(Arc::new(MemoryState::new()))
    }
}

impl GrantStore {
    pub(crate) fn new(store: Arc<dyn StateStore>) -> Self {
        Self(store)
    }

    /// The granted tools of a conversation, in alphabetical order. Read from the store once.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn read(
        &self,
        id: &ConversationId,
        grants: &Grants,
    ) -> Result<BTreeSet<String>, JournalError> {
        if !grants.is_read() {
            let _changing = grants.changing.lock().await;
            if !grants.is_read() {
                grants.set(self.stored(id).await?);
            }
        }
        Ok(grants.tools())
    }

    /// Returns an error if the conversation has too many grants for another one.
    ///
    /// # Errors
    /// Also when the store fails.
    pub(crate) async fn check_room(
        &self,
        id: &ConversationId,
        grants: &Grants,
        tool: &str,
    ) -> Result<(), JournalError> {
        let tools = self.read(id, grants).await?;
        if tools.len() >= MAX_GRANTS && !tools.contains(tool) { Err(full()) } else { Ok(()) }
    }

    /// Grants or revokes a tool. Durable when it returns; returns whether anything changed.
    ///
    /// # Errors
    /// When the store fails, or the conversation has too many grants; then nothing changes.
    pub(crate) async fn change(
        &self,
        id: &ConversationId,
        grants: &Grants,
        tool: &str,
        allowed: bool,
    ) -> Result<bool, JournalError> {
        let _changing = grants.changing.lock().await;
        let name = name_of(id);
        let (mut tools, mut changes) = (BTreeSet::new(), false);
        // From what is stored: another node may have changed it.
        change_document(&*self.0, &name, |stored| {
            tools = stored.map(|json| read(json, id)).unwrap_or_default();
            changes = if allowed { tools.insert(tool.to_owned()) } else { tools.remove(tool) };
            if changes && tools.len() > MAX_GRANTS {
                return Err(full());
            }
            let json = serde_json::to_string(&tools);
            let json = json.map_err(|error| JournalError::Refused(error.to_string()))?;
            Ok(Some(json).filter(|_| !tools.is_empty()))
        })
        .await?;
        grants.set(tools);
        Ok(changes)
    }

    /// Removes all grants of a conversation.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn forget(&self, id: &ConversationId, grants: &Grants) -> Result<(), JournalError> {
        let _changing = grants.changing.lock().await;
        self.0.delete(&name_of(id)).await?;
        grants.set(BTreeSet::new());
        Ok(())
    }

    /// Reads the granted tools of a conversation again: another node may have changed them.
    ///
    /// # Errors
    /// When the store fails; then nothing is granted.
    pub(crate) async fn read_again(&self, id: &ConversationId, grants: &Grants) -> Result<(), JournalError> {
        let _changing = grants.changing.lock().await;
        let stored = self.stored(id).await;
        grants.set(stored.clone().unwrap_or_default());
        stored.map(drop)
    }

    async fn stored(&self, id: &ConversationId) -> Result<BTreeSet<String>, JournalError> {
        let json = self.0.read(&name_of(id)).await?;
        Ok(json.map(|json| read(&json, id)).unwrap_or_default())
    }
}

fn full() -> JournalError {
    let why = format!("{MAX_GRANTS} tools are allowed in this conversation already: revoke some");
    JournalError::Refused(why)
}

/// Reads a document. If another version wrote it, or it is damaged, people are asked again.
fn read(json: &str, id: &ConversationId) -> BTreeSet<String> {
    let read = serde_json::from_str(json);
    let read =
        read.inspect_err(|error| tracing::warn!(conversation = %id, %error, "allowed tools cannot be read"));
    read.unwrap_or_default()
}

/// The name of a conversation's document; the document is deleted with the conversation.
fn name_of(id: &ConversationId) -> String {
    Document::AllowedTools.name_of(id)
}
