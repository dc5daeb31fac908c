//! Titles: the last of a conversation's own messages for them counts, so that renaming disturbs no append.

use async_nats::HeaderMap;
use everturn_orchestrator::{Head, JournalError};
use everturn_wire::ConversationId;

use crate::{entry::Entry, error::damaged, journal::NatsJournal, label};

/// Header: the first append of the conversation that was renamed.
const BORN: &str = "Ev-Born";

/// Header: the title, as JSON, so that it can be read without the content.
const TITLE: &str = "Ev-Title";

/// Maximum length of that header, in bytes. A longer title is only in the content.
const MAX_TITLE: usize = 8 << 10;

impl NatsJournal {
    pub(crate) async fn set_title(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        let Some(last) = self.last(id).await? else { return Ok(false) };
        let subject = self.leader.names().titles(id);
        let mut headers = HeaderMap::new();
        headers.insert(BORN, last.label.born.as_str());
        label::set_id(&mut headers, &self.next_append());
        // A string is always written.
        if let Ok(json) = serde_json::to_string(&title)
            && json.len() <= MAX_TITLE
        {
            headers.insert(TITLE, json);
        }
        let sequence = self.leader.store_anyhow(&subject, headers, title.into()).await?;
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
        let (of, title) = read(id, entry)?;
        if of == born {
            head.title = title;
        }
        Ok(())
    }
}

/// Returns the first append of the conversation that was renamed, and the title.
pub(crate) fn read(id: &ConversationId, entry: Entry) -> Result<(String, String), JournalError> {
    let born = entry.headers.get(BORN).map(ToString::to_string).unwrap_or_default();
    let title = String::from_utf8(entry.payload.into());
    Ok((born, title.map_err(|error| damaged(id, &format!("its title: {error}")))?))
}

/// Returns the first append of the conversation that was renamed, and the title, unless only the content has it.
pub(crate) fn from_headers(headers: &HeaderMap) -> Option<(String, String)> {
    let title = serde_json::from_str(headers.get(TITLE)?.as_str()).ok()?;
    Some((headers.get(BORN)?.to_string(), title))
}
