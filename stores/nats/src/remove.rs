//! Removing conversations: an append that marks it, after which every writer is stale, then deletion.

use everturn_ports::{JournalError, kernel::Millis};
use everturn_wire::ConversationId;

use crate::{
    attempt::Attempt,
    garbage,
    index::Projection,
    journal::NatsJournal,
    label::{Label, Last, REMOVAL_KEPT, TTL},
};

impl NatsJournal {
    pub(crate) async fn remove_all(&self, id: &ConversationId) -> Result<bool, JournalError> {
        loop {
            let Some(last) = self.last(id).await? else {
                self.complete_removal(id).await?;
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
    pub(crate) async fn remove_ephemeral(
        &self,
        idle_since: Millis,
    ) -> Result<Vec<ConversationId>, JournalError> {
        // What cannot be cleaned up, such as an append of a newer version, must not keep the others.
        let mut cleaned = Ok(());
        for id in self.index.read(Projection::interrupted).await? {
            cleaned = cleaned.and(self.complete_removal(&id).await);
        }
        cleaned = cleaned.and(garbage::sweep(self, garbage::OLD).await.map(drop));
        let mut removed = Vec::new();
        for (id, version) in self.index.read(|index| index.idle(idle_since)).await? {
            let done = match self.last(&id).await {
                Ok(Some(last)) if last.version == version => self.remove_at(&id, &last).await,
                // In use again.
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => removed.push(id),
                // In use again.
                Err(JournalError::Stale { .. }) => {}
                Err(error) if removed.is_empty() => return Err(error),
                // What was removed must be told. The next call continues.
                Err(_) => break,
            }
        }
        match cleaned {
            Err(error) if removed.is_empty() => Err(error),
            _ => Ok(removed),
        }
    }

    /// Removes a conversation if this is still its last append.
    async fn remove_at(&self, id: &ConversationId, last: &Last) -> Result<(), JournalError> {
        // Without an end: if this process ends now, the conversation must not come back.
        let mark = self.mark(id, last, None).await?;
        self.purge_before(id, mark).await
    }

    /// Continues a removal, if the last append is one that was interrupted.
    async fn complete_removal(&self, id: &ConversationId) -> Result<(), JournalError> {
        match self.leader.last(&self.leader.names().appends(id)).await? {
            Some(mark) if mark.headers.get(TTL).is_none() && mark.label(id)?.removes() => {
                self.purge_before(id, mark.last(id)?).await
            }
            _ => Ok(()),
        }
    }

    /// Deletes what is older than this mark, then has the mark expire: nothing is left for it to hide.
    async fn purge_before(&self, id: &ConversationId, mark: Last) -> Result<(), JournalError> {
        let names = self.leader.names();
        for subject in [names.appends(id), names.titles(id), names.parts_of(id)] {
            // What is newer belongs to another conversation of this name.
            self.leader.purge(&subject, Some(mark.version)).await?;
        }
        match self.mark(id, &mark, Some(format!("{}s", REMOVAL_KEPT.as_secs()))).await {
            // Stale: another conversation has begun, which needs no mark before it.
            Ok(_) | Err(JournalError::Stale { .. }) => {
                self.leader.purge(&names.appends(id), Some(mark.version + 1)).await
            }
            Err(error) => Err(error),
        }
    }

    /// Marks a conversation as removed, after this append. Returns the mark.
    async fn mark(
        &self,
        id: &ConversationId,
        last: &Last,
        expires: Option<String>,
    ) -> Result<Last, JournalError> {
        let label = Label::removal(self.next_append(), last);
        let subject = self.leader.names().appends(id);
        let mut attempt = Attempt::new(&self.leader, &self.lost, id, subject, last.version, label);
        if let Some(after) = expires {
            attempt = attempt.header(TTL, after);
        }
        let version = attempt.settle(0).await?.0;
        self.cache.saw(id, version);
        Ok(Last { version, label: attempt.label })
    }
}
