//! Resuming turns of an earlier process.

use std::sync::Arc;

use everturn_kernel::{Millis, Moment, Wait};
use everturn_wire::ConversationId;

use super::Orchestrator;
use crate::{Error, Unsealed, conversation::Conversation, session, timer};

/// The longest wait that a turn is told if it depends on calls of others, in milliseconds. If these calls ended with their process,
/// it is not waited for.
const LOOK_MS: u64 = 30_000;

fn is_short(wait: Moment) -> bool {
    wait.decided_ms <= LOOK_MS
}

impl Orchestrator {
    /// Resumes every turn that an earlier process left unsealed. A waiting turn keeps the rest of its wait, unless it waited
    /// for calls of others: it asks again at once. A streaming turn repeats its call, a turn that waits for a person keeps
    /// waiting. Turns that are due at once are resumed at the pace of the timer. Returns the number of resumed turns. Call it
    /// once, before anything else.
    ///
    /// If the journal is shared ([`Builder::cluster`](crate::Builder::cluster)), joins the other nodes, and resumes only turns
    /// whose node is gone.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn resume(&self) -> Result<usize, Error> {
        self.restore().await?;
        if let Some(peers) = self.ports.peers.clone() {
            return self.join(&peers).await;
        }
        let unsealed = self.ports.journal.unsealed(Millis(u64::MAX)).await?;
        let count = unsealed.len();
        self.wake(unsealed);
        Ok(count)
    }

    /// Restores what an earlier process knew about targets and their limits, and its retry settings, without resuming
    /// turns. For a process that shares the journal with others, one at a time, and resumes single conversations with
    /// [`resume_one`](Self::resume_one). Call it once, before anything else; [`resume`](Self::resume) includes it.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn restore(&self) -> Result<(), Error> {
        if let Some(store) = self.ports.state.clone() {
            self.ports.health.keep_in(store.clone(), self.ports.clock.now()).await?;
            self.ports.pacing.keep_in(store, self.ports.peers.is_some(), self.ports.clock.clone()).await?;
        }
        self.ports.usage.keep(self.ports.clock.clone());
        Ok(self.ports.retry.read().await?)
    }

    /// Resumes only the turn of this conversation, as [`resume`](Self::resume) does. Returns whether it has an unsealed
    /// turn.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn resume_one(&self, id: &ConversationId) -> Result<bool, Error> {
        let turn = self.ports.journal.load(id).await?.and_then(|stored| stored.turn);
        let is_unsealed = turn.is_some();
        self.wake(turn.map(|turn| Unsealed::new(id.clone(), turn.wait)));
        Ok(is_unsealed)
    }

    pub(super) fn wake(&self, unsealed: impl IntoIterator<Item = Unsealed>) {
        let now = self.ports.clock.now();
        let due = |Unsealed { id, wait, .. }: Unsealed| {
            let due = wait.due_at()?;
            Some((if wait.lasts(now) { due } else { timer::AT_ONCE }, id))
        };
        let unsealed: Vec<Unsealed> = unsealed.into_iter().collect();
        let may_be_held = |wait: Wait| wait.lasts(now) && wait.until().is_some_and(is_short);
        let looks = unsealed.iter().filter(|turn| may_be_held(turn.wait)).map(|turn| turn.id.clone());
        let looks: Vec<ConversationId> = looks.collect();
        self.ports.timers.wake_all(unsealed.into_iter().filter_map(due).collect());
        for id in looks {
            self.ports.timers.look_at(timer::AT_ONCE, id);
        }
    }

    /// Returns an existing conversation, to send it a command. Its unsealed turn continues, unless it is waiting.
    /// Queries use the registry instead.
    pub(super) async fn find(&self, id: &ConversationId) -> Result<Arc<Conversation>, Error> {
        let conversation = self.registry.get(id).await?;
        session::go_on_if_due(&self.ports, &conversation)?;
        Ok(conversation)
    }
}
