//! An observer of all conversations in the process, e.g. for logs, alerts or a status page.

use everturn_orchestrator::Observer;
use everturn_wire::{AgentEvent, EventBody};

/// Prints every retry of every conversation. It keeps nothing, so conversations can leave the memory.
pub(crate) struct PrintRetries;

impl Observer for PrintRetries {
    /// Runs on the task of the turn, so it must be quick.
    fn event(&self, event: &AgentEvent) {
        if let EventBody::ProviderRetry { attempt, delay_ms, message, .. } = &event.body {
            println!("[watcher] retry {} in {delay_ms} ms, because of {message}", attempt + 1);
        }
    }

    fn wants_text(&self) -> bool {
        false
    }
}
