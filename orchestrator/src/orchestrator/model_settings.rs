//! What conversations set for their model.

use everturn_wire::{ConversationId, ModelSettings};

use super::Orchestrator;
use crate::Error;

impl Orchestrator {
    /// Returns what a conversation sets for its model.
    ///
    /// # Errors
    /// When the conversation does not exist, or the store fails.
    pub async fn model_settings(&self, id: &ConversationId) -> Result<ModelSettings, Error> {
        self.registry.check(id).await?;
        Ok(self.ports.model_settings.of(id).await?)
    }

    /// Sets a conversation's system prompt and parameters for its model, in place of what it set before. Durable when it returns;
    /// turns that begin afterwards use them.
    ///
    /// # Errors
    /// When one is out of its range, the conversation does not exist, or the store fails.
    pub async fn set_model_settings(
        &self,
        id: &ConversationId,
        settings: ModelSettings,
    ) -> Result<ModelSettings, Error> {
        let settings = settings.trimmed();
        settings.check().map_err(|why| Error::BadMessage { why })?;
        self.registry.set_model_settings(id, &settings).await?;
        Ok(settings)
    }
}
