//! Summarizes the older part of a conversation because a person asked for it.

use everturn_wire::ConversationId;

use super::{Orchestrator, Started};
use crate::{
    Error, new_id,
    session::{self, TurnSettings, TurnTask},
};

impl Orchestrator {
    /// Summarizes the older part of a conversation: its newest quarter, but at least the last message with its answer, is
    /// still sent to models unchanged. The log keeps everything. This is a turn without a message: it waits and retries
    /// like any other, can be stopped, and ends with the summary. The conversation's last model or route is asked, unless
    /// another one summarizes ([`Builder::compact_with`](crate::Builder::compact_with)). Returns when the turn's start is
    /// durable.
    ///
    /// # Errors
    /// When the conversation does not exist, there is nothing to summarize, a turn is running, or the journal fails.
    pub async fn compact(&self, id: &ConversationId) -> Result<Started, Error> {
        self.ports.shutdown.check_open()?;
        let conversation = self.find(id).await?;
        conversation.settled().await;
        self.ports.read_settings(&conversation).await?;
        let vacancy = conversation.vacancy();
        let (chunks, last_model) = {
            let state = conversation.state();
            (state.record.chunks.clone(), state.record.head.model.clone())
        };
        let model = self.ports.models.of(id.caller_name().as_ref()).choose(None, last_model.as_deref())?;
        conversation.check_vacant(vacancy)?;
        if !session::may_summarize(&chunks) {
            return Err(Error::NothingToSummarize { id: id.clone() });
        }
        let seated = conversation.claim_since(vacancy)?;
        let settings = TurnSettings::new(&self.ports, &conversation, model, None, None);
        self.begin_turn(seated, TurnTask::compaction(&self.ports, new_id::turn(), None, settings)).await
    }
}
