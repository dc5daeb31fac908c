//! A caller's calls that are passed through.

use everturn_wire::{CallInfo, ConversationId};

use super::View;
use crate::{Dialect, Listener, OfferedModel, RelayCall, RelayError};

impl View {
    /// See [`Orchestrator::pass_through`](crate::Orchestrator::pass_through). The call is the caller's; one of another is
    /// never joined.
    ///
    /// # Errors
    /// As there.
    pub fn pass_through(&self, call: RelayCall) -> Result<Listener, RelayError> {
        self.all.pass_through(RelayCall { caller: self.name().cloned(), ..call })
    }

    /// Returns the caller's calls; the administrator sees those of all.
    pub fn calls(&self) -> Vec<CallInfo> {
        let calls = self.all.calls().into_iter().filter_map(|call| {
            let id = self.shown(&call.id.as_str().into())?;
            Some(CallInfo {
                id: id.to_string(),
                caller: call.caller.filter(|_| self.name().is_none()),
                ..call
            })
        });
        calls.collect()
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
