//! Appending: one message, stored only at the expected version.

use bytes::Bytes;
use everturn_ports::{Commit, JournalError, Version};
use everturn_wire::ConversationId;

use crate::{
    attempt::{Attempt, stale},
    journal::NatsJournal,
    label::{Label, Last},
    parts::AFTER,
    record,
};

impl NatsJournal {
    pub(crate) async fn append_commit(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        let last = self.before(id, expected).await?;
        let label = Label::of(self.next_append(), last.as_ref(), &commit);
        let refused = |error| JournalError::Refused(format!("conversation {id} cannot be stored: {error}"));
        let content = Bytes::from(record::write(&commit).map_err(refused)?);
        drop(commit);
        let bytes = content.len() as u64;
        if content.len() > self.max_append {
            return Err(JournalError::TooLarge { bytes, limit: self.max_append as u64 });
        }
        let subject = self.leader.names().appends(id);
        let mut attempt = Attempt::new(&self.leader, &self.lost, id, subject, expected.0, label);
        attempt.set_content(content, AFTER).await?;
        let stored = attempt.settle(self.cache.newest(id)).await;
        let has_parts = attempt.label.parts.is_some();
        match stored {
            Ok(version) => {
                self.bases.after(id, attempt.label.number);
                self.cache.put(id, Last { version: version.0, label: attempt.label });
                Ok(version)
            }
            Err(error) => {
                if let JournalError::Stale { found, .. } = &error {
                    self.cache.saw(id, found.0);
                }
                // If the outcome is unknown, the append may still need them.
                if has_parts && !matches!(error, JournalError::Unknown(_)) {
                    let parts = self.leader.names().parts(id, &attempt.label.id);
                    // Otherwise a later sweep removes them.
                    let _ = self.leader.purge(&parts, None).await;
                }
                Err(error)
            }
        }
    }

    /// Returns the append with the expected version. Costs a request, unless this process wrote or loaded it.
    async fn before(&self, id: &ConversationId, expected: Version) -> Result<Option<Last>, JournalError> {
        if expected.0 == 0 {
            return Ok(None);
        }
        if let Some(last) = self.cache.at(id, expected.0) {
            return Ok(Some(last));
        }
        let last = self.last(id).await?;
        match last {
            Some(last) if last.version == expected.0 => Ok(Some(last)),
            other => Err(stale(id, expected.0, other.map_or(0, |last| last.version))),
        }
    }
}
