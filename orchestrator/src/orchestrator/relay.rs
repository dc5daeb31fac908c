//! Calls that are passed through.

use std::sync::Arc;

use everturn_wire::{CallInfo, CallerName};
use tokio::sync::broadcast;

use super::Orchestrator;
use crate::{Dialect, Listener, OfferedModel, RelayCall, RelayError, caller::Ended, relay};

impl Orchestrator {
    /// Passes a call through: a turn of one step whose content is opaque, with the same schedule, limits and budget as
    /// other turns. A request that repeats one in progress joins it, and receives the same answer. The call outlives its
    /// listeners for a while, for the repetition of a caller that gave up waiting.
    ///
    /// # Errors
    /// When nobody can be asked, too much is waiting already, or the process is shutting down.
    pub fn pass_through(&self, call: RelayCall) -> Result<Listener, RelayError> {
        self.pass_through_until(call, None)
    }

    /// The same. The call, and what the listener receives, end with the caller.
    pub(crate) fn pass_through_until(
        &self,
        call: RelayCall,
        ended: Option<&Ended>,
    ) -> Result<Listener, RelayError> {
        self.calls.relay(&self.ports, call, ended)
    }

    /// Whether a call for this model can be passed through to a provider that speaks a dialect without leaving out any
    /// target: all targets of a model or route speak it, and a name that nobody lists is for a provider that does.
    pub fn speaks(&self, model: &str, dialect: Dialect) -> bool {
        relay::speaks(&self.ports.models.now(), model, dialect)
    }

    /// Returns the models of all providers that speak a dialect, by their own names, and the routes on which everything
    /// speaks it: what a caller of that dialect can ask for.
    pub fn models_of(&self, dialect: Dialect) -> Vec<OfferedModel> {
        self.models_of_caller(None, dialect)
    }

    /// The same for a caller.
    pub(crate) fn models_of_caller(
        &self,
        caller: Option<&CallerName>,
        dialect: Dialect,
    ) -> Vec<OfferedModel> {
        relay::models_of(&self.ports.models.of(caller), dialect)
    }

    /// Whether there is a provider that speaks this dialect.
    pub fn has_provider_of(&self, dialect: Dialect) -> bool {
        self.ports.models.now().relays.iter().any(|provider| provider.dialect == dialect)
    }

    /// Subscribes to changes of all calls. A slow subscriber misses some.
    pub fn call_changes(&self) -> broadcast::Receiver<Arc<CallInfo>> {
        self.calls.changes()
    }

    /// Returns the calls in progress, and those whose answer nobody has taken yet; the oldest first.
    pub fn calls(&self) -> Vec<CallInfo> {
        self.calls.list()
    }

    /// Makes a waiting call ask at once. Returns false if there is no such call.
    pub fn retry_call_now(&self, id: &str) -> bool {
        self.calls.retry_now(id)
    }

    /// Ends a call with its last refusal. Returns false if there is no such call.
    pub fn give_up_call(&self, id: &str) -> bool {
        self.calls.give_up(id)
    }
}
