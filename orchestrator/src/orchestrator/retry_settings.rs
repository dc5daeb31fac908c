//! Reading and changing retry settings at run time.

use std::sync::Arc;

use everturn_kernel::Input;
use everturn_wire::{
    Change, ConversationId, FallbackChains, InvalidRetrySettings, RetryPatch, RetrySettings,
    RetrySettingsState,
};
use futures_core::future::BoxFuture;
use tokio::sync::broadcast;

use super::{Orchestrator, command::odd_reply};
use crate::{
    Error,
    cluster::{Command, Reply},
    conversation::{Control, Conversation},
    retry_settings::{Set, check},
};

impl Orchestrator {
    /// Returns the retry settings of a conversation, or the global ones: those that are set, and the effective ones of
    /// the next turn.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn retry_settings(&self, id: Option<&ConversationId>) -> Result<RetrySettingsState, Error> {
        let conversation = match id {
            Some(id) => Some(self.registry.get(id).await?),
            None => None,
        };
        self.state_of(conversation.as_deref())
    }

    /// Changes the retry settings of a conversation, or the global ones. Durable when it returns. They apply to turns
    /// that begin afterwards; a running turn keeps its schedule.
    ///
    /// `enabled` also applies to running turns, unless their message set it. Turning it off for a conversation ends its
    /// turn if it is waiting for a retry. Turning it off globally does not interrupt waits: one last attempt follows
    /// each.
    ///
    /// # Errors
    /// When the conversation does not exist, a setting is out of range or has no effect, or the store fails. Then
    /// nothing changes.
    pub async fn change_retry_settings(
        &self,
        id: Option<&ConversationId>,
        patch: &RetryPatch,
    ) -> Result<RetrySettingsState, Error> {
        let Some(id) = id else { return self.change_in_task(None, patch).await };
        match self.command(id, Command::ChangeRetry(Box::new(patch.clone()))).await? {
            Reply::RetrySettings(state) => Ok(*state),
            _ => Err(odd_reply(id)),
        }
    }

    pub(super) async fn change_retry_of(
        &self,
        conversation: &Conversation,
        patch: &RetryPatch,
    ) -> Result<RetrySettingsState, Error> {
        self.change_in_task(Some(conversation.id.clone()), patch).await
    }

    fn change_in_task(
        &self,
        id: Option<ConversationId>,
        patch: &RetryPatch,
    ) -> BoxFuture<'static, Result<RetrySettingsState, Error>> {
        let (here, patch) = (self.clone(), patch.clone());
        Box::pin(async move {
            // In its own task: the stored and the active settings must agree even if this future is dropped.
            let changed = tokio::spawn(async move { here.change(id.as_ref(), &patch).await }).await;
            let broke = |_| crate::JournalError::Storage("the change of retry settings broke off".to_owned());
            changed.map_err(broke)?
        })
    }

    /// Turns automatic retries on or off, for one conversation or globally, as [`Self::change_retry_settings`] does.
    ///
    /// # Errors
    /// When the conversation does not exist, or the store fails.
    pub async fn set_auto_retry(&self, id: Option<&ConversationId>, enabled: bool) -> Result<(), Error> {
        self.change_retry_settings(id, &RetryPatch::enabled(enabled)).await.map(drop)
    }

    /// Subscribes to changes of retry settings. A receiver that falls far behind misses some.
    pub fn retry_settings_changes(&self) -> broadcast::Receiver<Arc<RetrySettingsState>> {
        self.ports.retry.changes.subscribe()
    }

    async fn change(
        &self,
        id: Option<&ConversationId>,
        patch: &RetryPatch,
    ) -> Result<RetrySettingsState, Error> {
        if *patch == RetryPatch::default() {
            let why = "no setting is named: name at least one, such as \"enabled\": true";
            return Err(InvalidRetrySettings(why.to_owned()).into());
        }
        let conversation = match id {
            Some(id) => {
                Some(self.registry.change_retry(id, |held, old| self.changed(Some(held), old, patch)).await?)
            }
            None => {
                self.ports.retry.change_global(|old| self.changed(None, old, patch)).await?;
                None
            }
        };
        // Whoever changes them may have mended a key, too.
        self.ports.health.forget_rejected_keys();
        let state = self.state_of(conversation.as_deref())?;
        if let Some(conversation) = &conversation
            && patch.enabled.is_some()
            && state.effective.enabled == Some(false)
            && conversation.waits_for_retry()
        {
            let control = Control { by_switch: true, ..Control::from(Input::AbortRetry) };
            // The settings are changed nevertheless.
            if let Err(error) = self.send(conversation, control) {
                tracing::warn!(conversation = %conversation.id, %error, "a wait could not be ended");
            }
        }
        self.ports.retry.changes.tell(&state);
        Ok(state)
    }

    /// Returns the settings after a change, if they are valid. Settings that are already set are not checked again.
    fn changed(
        &self,
        conversation: Option<&Conversation>,
        old: &RetrySettings,
        patch: &RetryPatch,
    ) -> Result<RetrySettings, Error> {
        let new = patch.applied_to(old);
        if has_figures(patch) {
            check(&new, &self.effective(conversation, &new)?)?;
            if let Some(Change::Set(chains)) = &patch.fallback_chains {
                self.check_chains(conversation.map(|conversation| &conversation.id), chains)?;
            }
        }
        Ok(new)
    }

    fn state_of(&self, conversation: Option<&Conversation>) -> Result<RetrySettingsState, Error> {
        let scope = conversation.map_or(&self.ports.retry.global, |conversation| &conversation.retry);
        let set = scope.settings();
        let effective = self.effective(conversation, &set)?;
        let conversation_id = conversation.map(|conversation| conversation.id.clone());
        Ok(RetrySettingsState { conversation_id, set: Box::new(set), effective: Box::new(effective) })
    }

    /// Returns the effective settings of this scope if it has these settings.
    fn effective(
        &self,
        conversation: Option<&Conversation>,
        set: &RetrySettings,
    ) -> Result<RetrySettings, Error> {
        let ports = &self.ports;
        let Some(conversation) = conversation else {
            let set = Set { message: None, conversation: None, global: Some(set) };
            return Ok(set.on(&ports.plain_base()));
        };
        let global = ports.retry.global.get();
        let set = Set { message: None, conversation: Some(set), global: global.as_deref() };
        let last_model = conversation.state().record.head.model.clone();
        // The settings can be read even if no model is configured.
        let model = ports.models.now().choose(None, last_model.as_deref()).ok();
        Ok(set.on(&model.as_ref().map_or_else(|| ports.plain_base(), |model| ports.base(model))))
    }

    /// Checks the retry settings of a message, before its turn begins.
    pub(super) fn check_retry(
        &self,
        conversation: &Conversation,
        model: &crate::model::Choice,
        retry: Option<&RetrySettings>,
    ) -> Result<(), Error> {
        let Some(retry) = retry else { return Ok(()) };
        let (own, global) = (conversation.retry.get(), self.ports.retry.global.get());
        let set = Set { message: Some(retry), conversation: own.as_deref(), global: global.as_deref() };
        check(retry, &set.on(&self.ports.base(model)))?;
        retry
            .fallback_chains
            .as_ref()
            .map_or(Ok(()), |chains| self.check_chains(Some(&conversation.id), chains))
    }

    /// Checks that fallback chains name models or routes that exist, and that no chain leads back to its start.
    fn check_chains(&self, id: Option<&ConversationId>, chains: &FallbackChains) -> Result<(), Error> {
        let models = self.ports.models.of(id.and_then(ConversationId::caller_name).as_ref());
        let wrong = |why: String| Err(InvalidRetrySettings(why).into());
        for (of, names) in &chains.0 {
            if let Some(unknown) = [of].into_iter().chain(names).find(|id| !models.has(id)) {
                let known = models.ids().join(", ");
                return wrong(format!(
                    "in fallbackChains, {unknown:?} is not a model or route of this server; known: {known}"
                ));
            }
            let own = models.targets_of(std::slice::from_ref(of));
            let leads_back = |name: &&String| {
                models.targets_of(&[(*name).clone()]).iter().all(|target| own.contains(target))
            };
            if let Some(name) = names.iter().find(leads_back) {
                return wrong(format!(
                    "the fallback chain of {of} leads back to it: {name} asks nothing else"
                ));
            }
        }
        Ok(())
    }
}

/// Whether the patch sets anything besides `enabled`.
fn has_figures(patch: &RetryPatch) -> bool {
    let others = RetryPatch { enabled: None, ..patch.clone() };
    let sets = |patch: &RetryPatch| !patch.applied_to(&RetrySettings::default()).is_empty();
    sets(&others) || matches!(patch.preset, Some(Change::Inherit))
}
