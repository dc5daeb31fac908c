//! What one caller sees and does: its own conversations and calls, under the names that it gave them, and no others.
//!
//! Every method translates the ids that it is given, before anything else, and those that it returns. Another caller's
//! conversation is one that does not exist. Transports hold nothing but a view, so they cannot forget to ask whose something
//! is. The administrator's view has everything, under its full name.

mod command;
mod query;
mod relay;

use std::sync::Arc;

use everturn_wire::{CallerName, ConversationId, RetrySettingsState};

use crate::{Caller, Error, Export, Orchestrator, SubscribeFrom, Subscription};

/// One caller's view of an orchestrator. Cheap to clone.
#[derive(Clone)]
pub struct View {
    all: Orchestrator,
    caller: Arc<Caller>,
    /// The command that it is used for, for the caller's [witness](Caller::witnessed_by); empty = its request says it.
    doing: &'static str,
}

impl Orchestrator {
    /// Returns what this caller sees. It is refused nothing for lack of a scope: transports check these.
    pub fn seen_by(&self, caller: &Caller) -> View {
        View { all: self.clone(), caller: Arc::new(caller.clone()), doing: "" }
    }
}

impl View {
    fn name(&self) -> Option<&CallerName> {
        self.caller.name()
    }

    /// Returns the full id of a conversation that the caller names.
    ///
    /// # Errors
    /// When it is another's: it does not exist for this caller.
    fn full(&self, id: &ConversationId) -> Result<ConversationId, Error> {
        if self.name().is_none() && id.caller().is_some() {
            self.caller.witness(self.doing, id);
        }
        self.translated(id)
    }

    /// Like [`full`](Self::full), of an id that is only a place in a list.
    fn translated(&self, id: &ConversationId) -> Result<ConversationId, Error> {
        match (self.name(), id.caller()) {
            (None, _) => Ok(id.clone()),
            (Some(name), None) => Ok(id.of(name)),
            (Some(name), Some(of)) if of == name.as_str() => Ok(id.clone()),
            (Some(_), Some(_)) => Err(Error::UnknownConversation { id: id.clone() }),
        }
    }

    /// Returns the id under which the caller knows a conversation; `None` = it is another's.
    pub fn shown(&self, id: &ConversationId) -> Option<ConversationId> {
        match self.name() {
            None => Some(id.clone()),
            Some(name) => (id.caller() == Some(name.as_str())).then(|| id.local()),
        }
    }

    /// Returns the id under which the caller knows a conversation that is its own.
    fn local(&self, id: &ConversationId) -> ConversationId {
        if self.name().is_some() { id.local() } else { id.clone() }
    }

    /// Replaces the ids in an error.
    fn told(&self, error: Error) -> Error {
        if self.name().is_some() { error.local() } else { error }
    }

    /// Returns a change of retry settings as the caller knows it; `None` if it concerns a conversation of another.
    pub fn shown_settings(&self, state: &RetrySettingsState) -> Option<RetrySettingsState> {
        let conversation_id = match &state.conversation_id {
            Some(id) => Some(self.shown(id)?),
            None => None,
        };
        Some(RetrySettingsState { conversation_id, ..state.clone() })
    }

    /// Returns the same view, used for this command.
    #[must_use]
    pub fn doing(&self, command: &'static str) -> Self {
        Self { doing: command, ..self.clone() }
    }

    /// Completes after [`Orchestrator::shutdown`] does, or when the caller's token is no longer valid: transports then close its
    /// connections.
    pub async fn down(&self) {
        let Some(ended) = self.caller.ended() else { return self.all.down().await };
        tokio::select! {
            () = self.all.down() => {}
            () = ended.over() => {}
        }
    }

    /// See [`Orchestrator::subscribe`]. The subscription ends when the caller's token is no longer valid.
    ///
    /// # Errors
    /// As there.
    pub async fn subscribe(
        &self,
        id: &ConversationId,
        from: impl Into<SubscribeFrom>,
        extensions: bool,
    ) -> Result<Subscription, Error> {
        let id = self.full(id)?;
        let events = self.all.subscribe(&id, from, extensions).await.map_err(|error| self.told(error))?;
        Ok(match self.caller.ended() {
            Some(ended) => events.of_caller(ended, self.name().map(|_| &id)),
            None => events,
        })
    }

    /// See [`Orchestrator::export`].
    ///
    /// # Errors
    /// As there.
    pub async fn export(&self, id: &ConversationId) -> Result<Export, Error> {
        let id = self.full(id)?;
        let export = self.all.export(&id).await.map_err(|error| self.told(error))?;
        Ok(export.shown_as(self.local(&id)))
    }
}
