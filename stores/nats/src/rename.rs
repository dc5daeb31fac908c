//! Renaming conversations.

use async_nats::HeaderMap;
use everturn_ports::{Head, JournalError};
use everturn_wire::ConversationId;

use crate::{journal::NatsJournal, label, title};

impl NatsJournal {
    pub(crate) async fn set_title(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        let Some(last) = self.last(id).await? else { return Ok(false) };
        let subject = self.leader.names().titles(id);
        let mut headers = HeaderMap::new();
        headers.insert(title::BORN, last.label.born.as_str());
        label::set_id(&mut headers, &self.next_append());
        // A string is always written.
        if let Ok(json) = serde_json::to_string(&title)
            && json.len() <= title::MAX
        {
            headers.insert(title::TITLE, json);
        }
        let sequence = self.leader.store_anyhow(&subject, headers, title.into()).await?;
        // If the conversation was removed meanwhile, that may have been too early to delete this title, too.
        if self.last(id).await?.is_none_or(|now| now.label.born != last.label.born) {
            self.leader.delete(sequence).await;
            return Ok(false);
        }
        // Only the last one counts. If this fails, the next renaming or removal does it.
        let _ = self.leader.purge(&subject, Some(sequence)).await;
        Ok(true)
    }

    /// Replaces the title if the conversation that began with the append `born` was renamed. Costs a request.
    pub(crate) async fn retitle(
        &self,
        id: &ConversationId,
        born: &str,
        head: &mut Head,
    ) -> Result<(), JournalError> {
        let Some(entry) = self.leader.last(&self.leader.names().titles(id)).await? else { return Ok(()) };
        let (of, title) = title::read(id, entry)?;
        if of == born {
            head.title = title;
        }
        Ok(())
    }
}
