//! Taking up again what an earlier process left unsealed.

use std::sync::Arc;

use everturn_kernel::Millis;
use everturn_wire::ConversationId;

use super::Orchestrator;
use crate::{
    Error,
    conversation::Conversation,
    session::{self, Again, Job},
};

impl Orchestrator {
    /// Goes on with every turn that an earlier process left unsealed: one that waited keeps what is left of its wait,
    /// one that streamed asks again. Says how many there are. To be called once, before anything else.
    ///
    /// # Errors
    /// When the journal fails, or holds a turn of a later version of this program.
    pub async fn resume(&self) -> Result<usize, Error> {
        let unsealed = self.shared.journal.unsealed(Millis(u64::MAX)).await?;
        for (id, _) in &unsealed {
            self.find(id).await?;
        }
        Ok(unsealed.len())
    }

    /// A conversation that exists. Its unsealed turn goes on.
    pub(super) async fn find(&self, id: &ConversationId) -> Result<Arc<Conversation>, Error> {
        let conversation = self.shared.registry.get(id, self.shared.journal.as_ref()).await?;
        self.take_up(&conversation)?;
        Ok(conversation)
    }

    /// Goes on with a turn that is in the journal but has no session, if there is one.
    pub(super) fn take_up(&self, conversation: &Arc<Conversation>) -> Result<(), Error> {
        let Some((record, inbox)) = conversation.claim_unsealed() else { return Ok(()) };
        let again = if self.shared.registry.was_broken(&conversation.id) { Again::End } else { Again::GoOn };
        let model = conversation.state().head.model.clone();
        match Job::again(&self.shared, record.clone(), model.as_deref(), again) {
            Ok(Some(job)) => {
                tokio::spawn(session::run(self.shared.clone(), conversation.clone(), inbox, job));
                Ok(())
            }
            Ok(None) => {
                conversation.put_back(record);
                Ok(())
            }
            Err(error) => {
                conversation.put_back(record);
                Err(Error::Unreadable { id: conversation.id.clone(), why: error.to_string() })
            }
        }
    }
}
