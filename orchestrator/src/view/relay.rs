//! A caller's calls that are passed through.

use std::sync::Arc;

use everturn_wire::{CallInfo, ConversationId};
use tokio::sync::broadcast;

use super::View;
use crate::{Dialect, Listener, OfferedModel, RelayCall, RelayError};

impl View {
    /// See [`Orchestrator::pass_through`](crate::Orchestrator::pass_through). The call is the caller's; one of another is
    /// never joined. It and its listener end when the caller's token is no longer valid.
    ///
    /// # Errors
    /// As there.
    pub fn pass_through(&self, call: RelayCall) -> Result<Listener, RelayError> {
        let call = RelayCall { caller: self.name().cloned(), ..call };
        self.all.pass_through_until(call, self.caller.ended())
    }

    /// Returns the caller's calls; the administrator sees those of all.
    pub fn calls(&self) -> Vec<CallInfo> {
        self.all.calls().into_iter().filter_map(|call| self.shown_call(call)).collect()
    }

    /// Returns a call as this caller sees it; `None` if it is another's.
    pub fn shown_call(&self, call: CallInfo) -> Option<CallInfo> {
        let id = self.shown(&call.id.as_str().into())?;
        let caller = call.caller.filter(|_| self.name().is_none());
        Some(CallInfo { id: id.to_string(), caller, ..call })
    }

    /// Subscribes to changes of all callers' calls; [`Self::shown_call`] says which ones this one sees.
    pub fn call_changes(&self) -> broadcast::Receiver<Arc<CallInfo>> {
        self.all.call_changes()
    }

    /// See [`Orchestrator::retry_call_now`](crate::Orchestrator::retry_call_now). Another's call does not exist.
    pub fn retry_call_now(&self, id: &str) -> bool {
        self.call(id).is_some_and(|id| self.all.retry_call_now(id.as_str()))
    }

    /// See [`Orchestrator::give_up_call`](crate::Orchestrator::give_up_call). Another's call does not exist.
    pub fn give_up_call(&self, id: &str) -> bool {
        self.call(id).is_some_and(|id| self.all.give_up_call(id.as_str()))
    }

    /// See [`Orchestrator::speaks`](crate::Orchestrator::speaks).
    pub fn speaks(&self, model: &str, dialect: Dialect) -> bool {
        self.all.speaks(model, dialect)
    }

    /// See [`Orchestrator::models_of`](crate::Orchestrator::models_of).
    pub fn models_of(&self, dialect: Dialect) -> Vec<OfferedModel> {
        self.all.models_of_caller(self.name(), dialect)
    }

    /// See [`Orchestrator::has_provider_of`](crate::Orchestrator::has_provider_of).
    pub fn has_provider_of(&self, dialect: Dialect) -> bool {
        self.all.has_provider_of(dialect)
    }

    fn call(&self, id: &str) -> Option<ConversationId> {
        self.full(&id.into()).ok()
    }
}
