//! Reading the content of an append, wherever it is stored.

use bytes::Bytes;
use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{
    entry::Entry,
    error::damaged,
    label::Label,
    leader::Leader,
    parts::{Parts, hash},
};

/// Returns the content of an append: its own, or that of the parts that it names.
pub(crate) async fn content(
    leader: &Leader,
    id: &ConversationId,
    entry: &Entry,
    label: &Label,
) -> Result<Bytes, JournalError> {
    match &label.parts {
        None => Ok(entry.payload.clone()),
        Some(parts) => in_parts(leader, id, &label.id, parts).await,
    }
}

/// Costs a request for each part.
async fn in_parts(
    leader: &Leader,
    id: &ConversationId,
    append: &str,
    parts: &Parts,
) -> Result<Bytes, JournalError> {
    let mut content = Vec::new();
    for part in 0..parts.count {
        let subject = leader.names().part(id, append, part);
        let missing = || damaged(id, &format!("part {part} of append {append} is missing"));
        content.extend_from_slice(&leader.last(&subject).await?.ok_or_else(missing)?.payload);
        if content.len() > parts.bytes {
            break;
        }
    }
    if content.len() != parts.bytes || hash(&content) != parts.hash {
        return Err(damaged(id, &format!("the parts of append {append} are not what was written")));
    }
    Ok(content.into())
}
