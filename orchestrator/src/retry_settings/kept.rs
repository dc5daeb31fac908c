//! The settings of all scopes, and their storage.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use everturn_wire::{ConversationId, RetrySettings, RetrySettingsState};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, broadcast};

use super::{Base, Begun, Maker, Set};
use crate::{
    JournalError, StateStore,
    retry_scope::{RetryScope, Switch},
    state::{Document, change_document},
};

/// The name of the global document in the store.
const NAME: &str = "retry-settings";

/// How many changes a slow listener may lag behind.
const PLACES: usize = 64;

/// The settings of all scopes.
pub(crate) struct RetryScopes {
    pub(crate) global: Arc<RetryScope>,
    /// What applies if no scope sets it: whether failures are retried, and the fallback chains.
    pub(crate) configured: RetrySettings,
    /// Announces every change.
    pub(crate) changes: RetryChanges,
    maker: Maker,
    store: Arc<dyn StateStore>,
    /// Whether any conversation may have its own settings; if not, loading one skips the lookup. True until the store
    /// was read.
    some_conversation: AtomicBool,
    /// Held while the global document is written.
    writing: Mutex<()>,
}

/// The global document.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Saved {
    global: RetrySettings,
    some_conversation: bool,
}

impl RetryScopes {
    /// Creates the scopes without any settings; changes are saved in `store`.
    pub(crate) fn new(store: Arc<dyn StateStore>, configured: RetrySettings) -> Self {
        Self {
            global: Arc::default(),
            configured,
            changes: RetryChanges::default(),
            maker: Maker::default(),
            store,
            some_conversation: AtomicBool::new(true),
            writing: Mutex::default(),
        }
    }

    /// Loads the global settings that an earlier process saved.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn read(&self) -> Result<(), JournalError> {
        let _writing = self.writing.lock().await;
        let saved: Saved = self.document(NAME).await?.unwrap_or_default();
        self.some_conversation.store(saved.some_conversation, Ordering::Relaxed);
        self.global.set(usable(saved.global, NAME));
        Ok(())
    }

    /// The saved settings of a conversation.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn of_conversation(&self, id: &ConversationId) -> Result<RetrySettings, JournalError> {
        if !self.some_conversation.load(Ordering::Relaxed) {
            return Ok(RetrySettings::default());
        }
        let name = name_of(id);
        let settings = self.document(&name).await?.unwrap_or_default();
        Ok(usable(settings, &name))
    }

    /// Changes the settings of a conversation. Durable when it returns. Must not be called concurrently for one conversation
    /// in one process.
    ///
    /// # Errors
    /// Those of `change`, and when the store fails; then nothing changes.
    pub(crate) async fn change_of_conversation<E: From<JournalError>>(
        &self,
        id: &ConversationId,
        change: impl Fn(&RetrySettings) -> Result<RetrySettings, E>,
    ) -> Result<RetrySettings, E> {
        let name = name_of(id);
        // Checks the change before anything is written.
        let stored: RetrySettings = self.document(&name).await?.unwrap_or_default();
        if !change(&usable(stored, &name))?.is_empty() {
            self.note_conversation().await?;
        }
        let mut changed = RetrySettings::default();
        change_document(&*self.store, &name, |stored| {
            changed = change(&usable(read(stored, &name).unwrap_or_default(), &name))?;
            Ok::<_, E>(if changed.is_empty() { None } else { Some(json_of(&changed)?) })
        })
        .await?;
        Ok(changed)
    }

    /// Removes the settings of a conversation. Durable when it returns.
    ///
    /// # Errors
    /// When the store fails; then nothing changes.
    pub(crate) async fn forget(&self, id: &ConversationId) -> Result<(), JournalError> {
        self.store.delete(&name_of(id)).await
    }

    /// Notes that some conversation has settings, before the first ones are saved: later readers must look for them.
    async fn note_conversation(&self) -> Result<(), JournalError> {
        let _writing = self.writing.lock().await;
        if !self.some_conversation.load(Ordering::Relaxed) {
            self.change_saved(|saved| Ok(Saved { some_conversation: true, ..saved })).await?;
            self.some_conversation.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Changes the global settings. Durable when it returns.
    ///
    /// # Errors
    /// Those of `change`, and when the store fails; then nothing changes.
    pub(crate) async fn change_global<E: From<JournalError>>(
        &self,
        change: impl Fn(&RetrySettings) -> Result<RetrySettings, E>,
    ) -> Result<(), E> {
        let _writing = self.writing.lock().await;
        let mut global = RetrySettings::default();
        let known = self.some_conversation.load(Ordering::Relaxed);
        self.change_saved(|saved| {
            global = change(&usable(saved.global, NAME))?;
            Ok::<_, E>(Saved { global: global.clone(), some_conversation: saved.some_conversation || known })
        })
        .await?;
        self.global.set(global);
        Ok(())
    }

    /// What a turn on this base begins with.
    pub(crate) fn begin(&self, base: &Base<'_>, set: Set<'_>) -> Begun {
        self.maker.begin(base, set)
    }

    /// Whether a turn retries automatically: set by its message, else by its conversation, else globally, else in the
    /// configuration.
    pub(crate) fn switch(&self, message: Option<bool>, conversation: &Arc<RetryScope>) -> Switch {
        let configured = self.configured.enabled.unwrap_or(true);
        Switch { message, conversation: conversation.clone(), global: self.global.clone(), configured }
    }

    /// The fallback chain of this model or route, from the strongest scope that sets chains.
    pub(crate) fn chain_of(&self, set: Set<'_>, id: &str) -> Vec<String> {
        let scopes = [set.message, set.conversation, set.global, Some(&self.configured)];
        let chains = scopes.into_iter().flatten().find_map(|settings| settings.fallback_chains.as_ref());
        chains.and_then(|chains| chains.0.get(id)).cloned().unwrap_or_default()
    }

    /// Changes the global document. Other nodes may change it at the same time.
    async fn change_saved<E: From<JournalError>>(
        &self,
        mut change: impl FnMut(Saved) -> Result<Saved, E>,
    ) -> Result<(), E> {
        change_document(&*self.store, NAME, |stored| {
            let saved = change(read(stored, NAME).unwrap_or_default())?;
            Ok::<_, E>(Some(json_of(&saved)?))
        })
        .await
    }

    async fn document<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<Option<T>, JournalError> {
        Ok(read(self.store.read(name).await?.as_deref(), name))
    }
}

fn json_of(document: &impl Serialize) -> Result<String, JournalError> {
    serde_json::to_string(document).map_err(|error| JournalError::Refused(error.to_string()))
}

/// Reads a document. One that another version wrote, or that is damaged, is treated as absent.
fn read<T: for<'de> Deserialize<'de>>(json: Option<&str>, name: &str) -> Option<T> {
    let read = serde_json::from_str(json?);
    read.inspect_err(|error| tracing::warn!(name, %error, "retry settings cannot be read")).ok()
}

/// The name of a conversation's document; the document is deleted with the conversation.
fn name_of(id: &ConversationId) -> String {
    Document::RetrySettings.name_of(id)
}

/// Returns saved settings if this version supports them, else the defaults.
fn usable(settings: RetrySettings, name: &str) -> RetrySettings {
    match settings.check() {
        Ok(()) => settings,
        Err(error) => {
            tracing::warn!(name, %error, "retry settings that were kept are ignored");
            RetrySettings::default()
        }
    }
}

/// Announces changes of the settings.
pub(crate) struct RetryChanges(broadcast::Sender<Arc<RetrySettingsState>>);

impl Default for RetryChanges {
    fn default() -> Self {
        Self(broadcast::Sender::new(PLACES))
    }
}

impl RetryChanges {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<RetrySettingsState>> {
        self.0.subscribe()
    }

    pub(crate) fn tell(&self, state: &RetrySettingsState) {
        // Fails only without listeners.
        let _ = self.0.send(Arc::new(state.clone()));
    }
}
