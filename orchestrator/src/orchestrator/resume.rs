//! Taking up again what an earlier process left unsealed.

use std::sync::Arc;

use everturn_kernel::Millis;
use everturn_wire::ConversationId;

use super::Orchestrator;
use crate::{
    Error,
    conversation::{Control, Conversation, Unsealed},
    session::{self, Job},
    timer,
};

impl Orchestrator {
    /// Goes on with every turn that an earlier process left unsealed: one that waited keeps what is left of its wait,
    /// one that streamed asks again. Many that are due at once are taken up one after the other, at the pace of the
    /// timer. One that waits for a person waits on. Says how many go on. To be called once, before anything else.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn resume(&self) -> Result<usize, Error> {
        let unsealed = self.shared.journal.unsealed(Millis(u64::MAX)).await?;
        let (now, count) = (self.shared.clock.now(), unsealed.len());
        for (id, wait) in unsealed {
            let Some(due) = wait.due_at() else { continue };
            timer::wake_at(&self.shared, if wait.lasts(now) { due } else { timer::AT_ONCE }, id);
        }
        Ok(count)
    }

    /// A conversation that exists. Its unsealed turn goes on, unless it is parked.
    pub(crate) async fn find(&self, id: &ConversationId) -> Result<Arc<Conversation>, Error> {
        let conversation = self.shared.registry.get(id, self.shared.journal.as_ref()).await?;
        self.take_up(&conversation, None)?;
        Ok(conversation)
    }

    /// Goes on with a turn that is in the journal but has no session, if there is one: at once for a command, else when
    /// its wait is over. Says whether the command was taken along.
    pub(super) fn take_up(
        &self,
        conversation: &Arc<Conversation>,
        control: Option<Box<Control>>,
    ) -> Result<bool, Error> {
        let with_command = control.is_some();
        let (shutdown, now) = (&self.shared.shutdown, self.shared.clock.now());
        let Some(unsealed) = conversation.claim_unsealed(shutdown, now, control) else {
            return Ok(false);
        };
        let Unsealed { record, inbox } = unsealed;
        self.shared.timers.remove(record.wait, &conversation.id);
        let model = conversation.state().head.model.clone();
        match Job::again(&self.shared, record.clone(), model.as_deref()) {
            Ok(Some(job)) => {
                tokio::spawn(session::run(self.shared.clone(), conversation.clone(), inbox, job));
                Ok(with_command)
            }
            Ok(None) => {
                conversation.put_back(record);
                Ok(false)
            }
            Err(error) => {
                conversation.put_back(record);
                Err(Error::Unreadable { id: conversation.id.clone(), why: error.to_string() })
            }
        }
    }
}
