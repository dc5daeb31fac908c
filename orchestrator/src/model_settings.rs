//! What conversations set for their model, and its storage.

use std::sync::{Arc, PoisonError, RwLock};

use everturn_wire::{ConversationId, ModelSettings};

use crate::{JournalError, StateStore, journal::Configured, state::Document};

/// Where they are kept: a document per conversation.
#[derive(Clone)]
pub(crate) struct ModelSettingsStore(Arc<dyn StateStore>);

impl ModelSettingsStore {
    pub(crate) fn new(store: Arc<dyn StateStore>) -> Self {
        Self(store)
    }

    /// Returns what a conversation sets. What another version wrote and this one does not know counts as nothing.
    pub(crate) async fn of(&self, id: &ConversationId) -> Result<ModelSettings, JournalError> {
        let name = Document::ModelSettings.name_of(id);
        let Some(json) = self.0.read(&name).await? else { return Ok(ModelSettings::default()) };
        let read = serde_json::from_str(&json);
        Ok(read
            .inspect_err(|error| tracing::warn!(name, %error, "model settings cannot be read"))
            .unwrap_or_default())
    }

    /// Durable when it returns.
    pub(crate) async fn write(
        &self,
        id: &ConversationId,
        settings: &ModelSettings,
    ) -> Result<(), JournalError> {
        let name = Document::ModelSettings.name_of(id);
        if settings.is_empty() {
            return self.0.delete(&name).await;
        }
        let json =
            serde_json::to_string(settings).map_err(|error| JournalError::Refused(error.to_string()))?;
        self.0.write(&name, json).await
    }
}

/// What one conversation sets, as its next turn sees it.
#[derive(Debug, Default)]
pub(crate) struct OfConversation(RwLock<Option<Arc<ModelSettings>>>);

impl OfConversation {
    pub(crate) fn set(&self, settings: ModelSettings) {
        let settings = (!settings.is_empty()).then(|| Arc::new(settings));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Returns what defines a turn that begins now.
    pub(crate) fn over(&self, configured: Arc<Configured>) -> Arc<Configured> {
        let own = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        match own {
            Some(own) => over(&own, &configured),
            None => configured,
        }
    }
}

/// Returns what defines a turn of a conversation with these settings.
pub(crate) fn over(own: &ModelSettings, configured: &Configured) -> Arc<Configured> {
    let ModelSettings { system_prompt, temperature, max_output_tokens, reasoning_effort } = own;
    Arc::new(Configured {
        system_prompt: system_prompt.clone().or_else(|| configured.system_prompt.clone()),
        max_output_tokens: max_output_tokens.or(configured.max_output_tokens),
        temperature: *temperature,
        usual_effort: reasoning_effort.clone(),
        ..configured.clone()
    })
}
