//! Removing conversations: an append that marks it, after which every writer is stale, then deletion.

use everturn_ports::{JournalError, kernel::Millis};
use everturn_wire::ConversationId;

use crate::{
    attempt::Attempt,
    garbage,
    journal::NatsJournal,
    label::{Label, Last, REMOVAL_KEPT},
};

/// Header: the server deletes the message after this time.
const TTL: &str = "Nats-TTL";

impl NatsJournal {
    pub(crate) async fn remove_all(&self, id: &ConversationId) -> Result<bool, JournalError> {
        loop {
            let Some(last) = self.last(id).await? else {
                // Deletes what an interrupted removal left.
                self.purge_removed(id).await?;
                return Ok(false);
            };
            match self.remove_at(id, &last).await {
                // Someone wrote in between.
                Err(JournalError::Stale { .. }) => {}
                other => return other.map(|()| true),
            }
        }
    }

    /// Costs as much as listing, and a few requests for each removed conversation.
    pub(crate) async fn remove_ephemeral(&self, idle_since: Millis) -> Result<usize, JournalError> {
        let mut removed = 0;
        for (id, version) in self.index.read(|index| index.idle(idle_since)).await? {
            // Otherwise it is in use again.
            let Some(last) = self.last(&id).await?.filter(|last| last.version == version) else { continue };
            match self.remove_at(&id, &last).await {
                Ok(()) => removed += 1,
                // In use again.
                Err(JournalError::Stale { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        garbage::sweep(self, garbage::OLD).await?;
        Ok(removed)
    }

    /// Removes a conversation if this is still its last append.
    async fn remove_at(&self, id: &ConversationId, last: &Last) -> Result<(), JournalError> {
        let label = Label::removal(self.next_append(), last);
        let subject = self.leader.names().appends(id);
        let attempt = Attempt::new(&self.leader, &self.lost, id, subject, last.version, label);
        let mark = attempt.header(TTL, format!("{}s", REMOVAL_KEPT.as_secs())).settle(0).await?;
        self.cache.saw(id, mark.0);
        let names = self.leader.names();
        self.leader.purge(&names.appends(id), Some(mark.0)).await?;
        self.purge_rest(id).await
    }

    /// Deletes what an interrupted removal left, if the last append is a removal.
    async fn purge_removed(&self, id: &ConversationId) -> Result<(), JournalError> {
        let subject = self.leader.names().appends(id);
        let Some(mark) = self.leader.last(&subject).await? else { return Ok(()) };
        if !mark.label(id)?.removes()
            || self.leader.next(&subject, 1).await?.is_some_and(|first| first.sequence == mark.sequence)
        {
            return Ok(());
        }
        self.leader.purge(&subject, Some(mark.sequence)).await
    }

    /// Deletes the titles and parts of a removed conversation.
    async fn purge_rest(&self, id: &ConversationId) -> Result<(), JournalError> {
        let names = self.leader.names();
        self.leader.purge(&names.titles(id), None).await?;
        self.leader.purge(&names.parts_of(id), None).await
    }
}
