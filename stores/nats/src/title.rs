//! Titles: the last of a conversation's own messages for them counts, so that renaming disturbs no append.

use async_nats::HeaderMap;
use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{entry::Entry, error::damaged};

/// Header: the first append of the conversation that was renamed.
pub(crate) const BORN: &str = "Ev-Born";

/// Header: the title, as JSON, so that it can be read without the content.
pub(crate) const TITLE: &str = "Ev-Title";

/// Maximum length of that header, in bytes. A longer title is only in the content.
pub(crate) const MAX: usize = 8 << 10;

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
