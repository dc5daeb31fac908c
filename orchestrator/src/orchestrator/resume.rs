//! Resuming turns of an earlier process.

use std::sync::Arc;

use everturn_kernel::{Millis, Wait};
use everturn_wire::ConversationId;

use super::Orchestrator;
use crate::{Error, conversation::Conversation, session, timer};

impl Orchestrator {
    /// Resumes every turn that an earlier process left unsealed. A waiting turn keeps the rest of its wait, a streaming turn
    /// repeats its call, a turn that waits for a person keeps waiting. Turns that are due at once are resumed at the pace of
    /// the timer. Returns the number of resumed turns. Call it once, before anything else.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn resume(&self) -> Result<usize, Error> {
        if let Some(store) = self.ports.state.clone() {
            self.ports.health.keep_in(store.clone(), self.ports.clock.now()).await?;
            self.ports.gates.keep_in(store, self.ports.clock.clone()).await?;
        }
        self.ports.retry.read().await?;
        let unsealed = self.ports.journal.unsealed(Millis(u64::MAX)).await?;
        let (now, count) = (self.ports.clock.now(), unsealed.len());
        let due = |(id, wait): (ConversationId, Wait)| {
            let due = wait.due_at()?;
            Some((if wait.lasts(now) { due } else { timer::AT_ONCE }, id))
        };
        self.ports.timers.wake_all(unsealed.into_iter().filter_map(due).collect());
        Ok(count)
    }

    /// A conversation that exists, to be told something. Its unsealed turn goes on, unless it waits: who only looks has
    /// it from the registry.
    pub(super) async fn find(&self, id: &ConversationId) -> Result<Arc<Conversation>, Error> {
        let conversation = self.registry.get(id).await?;
        session::go_on_if_due(&self.ports, &conversation)?;
        Ok(conversation)
    }
}
