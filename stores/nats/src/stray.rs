//! Strays: appends that servers stored although another one already followed the same version.
//!
//! A leader whose disk is full loses the appends that it stored last, which the other servers have. Until it is replaced, it
//! accepts appends at the version that it still knows, and the others store those, too. It acknowledges none of them, because it
//! cannot store them itself. So only the first append after a version counts.

use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{entry::Entry, error::failed, journal::NatsJournal, label::expected};

impl NatsJournal {
    /// Deletes strays from the end of a conversation. Returns whether there were any. Costs a request if not.
    pub(crate) async fn remove_strays(
        &self,
        id: &ConversationId,
        last: &Entry,
    ) -> Result<bool, JournalError> {
        let subject = self.leader.names().appends(id);
        let Some(before) = expected(&last.headers) else { return Ok(false) };
        let next = self.leader.next(&subject, before + 1).await?;
        let Some(mut counts) = next.map(|next| next.sequence).filter(|next| *next < last.sequence) else {
            return Ok(false);
        };
        let mut from = counts + 1;
        while let Some(entry) = self.leader.next(&subject, from).await? {
            from = entry.sequence + 1;
            if expected(&entry.headers).is_none_or(|expected| expected >= counts) {
                counts = entry.sequence;
                continue;
            }
            tracing::warn!(
                conversation = %id, sequence = entry.sequence,
                "a server accepted an append at an old version, as one does whose disk is full; it is deleted"
            );
            let deleted = self.leader.stream.delete_message(entry.sequence).await;
            // Another node may have been faster.
            if let Err(error) = deleted
                && self.leader.at(entry.sequence).await?.is_some()
            {
                return Err(failed(&self.leader.place, &error.to_string()));
            }
        }
        self.cache.forget(id);
        Ok(true)
    }
}
