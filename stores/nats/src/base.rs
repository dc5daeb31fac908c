//! Bases: what reading a conversation's history needs of a run of appends, condensed into one message.
//!
//! A base has the chunks and the figures of sealed turns of up to [`APPENDS`] consecutive appends, but not their events and
//! turns. Bases are a log of their own, beside the log of appends: readers read the bases, then the appends that no base
//! covers. The writer of an append saves bases now and then, after the append was acknowledged. Old events are dropped by
//! raising the [`Floor`](crate::floor::Floor), then deleting the appends below it.
//!
//! Why no reader sees a history with a hole, whoever else writes, drops events or removes the conversation: `notes/decisions.md`.

mod content;
mod extend;

use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{
    entry::Entry,
    floor::{COVERS, EVENTS},
    label::{self, Label, Last, Unreadable},
    leader::Leader,
    marks::Mark,
    payload,
};

pub(crate) use content::{APPENDS, Content, Seal, Segment};
pub(crate) use extend::Bases;

/// Header: the hash of a base's content.
const HASH: &str = "Ev-Hash";
/// Header of a part of a base: the base that it must follow.
pub(crate) const AFTER: &str = "Ev-Base-After";

/// The last base of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    /// Its place in the log of bases. Its label's `number` counts bases; its `reach` is that of the appends.
    pub(crate) last: Last,
    /// The last append that it covers.
    pub(crate) covers: Mark,
    /// The number of events up to there.
    pub(crate) events: u64,
}

impl Base {
    /// Returns the last base of the conversation that began with the append `born`. Costs a request.
    pub(crate) async fn of(
        leader: &Leader,
        id: &ConversationId,
        born: &str,
    ) -> Result<Option<Self>, JournalError> {
        let entry = leader.last(&leader.names().bases(id)).await?;
        let base = entry.map(|entry| Self::read(id, &entry)).transpose()?;
        // One of a removed conversation with the same name may be left over.
        Ok(base.filter(|base| base.last.label.born == born))
    }

    fn read(id: &ConversationId, entry: &Entry) -> Result<Self, JournalError> {
        let last = entry.last(id)?;
        let (covers, events) = Self::headers(entry).map_err(|error| entry.unreadable(id, &error))?;
        Ok(Self { last, covers, events })
    }

    fn headers(entry: &Entry) -> Result<(Mark, u64), Unreadable> {
        let covers = Mark::parse(label::text(&entry.headers, COVERS)?);
        Ok((covers.ok_or(Unreadable::Header(COVERS))?, label::number(&entry.headers, EVENTS)?))
    }
}

/// Reads the content of a base.
pub(crate) async fn content(
    leader: &Leader,
    id: &ConversationId,
    entry: &Entry,
    label: &Label,
) -> Result<Content, JournalError> {
    let content = payload::content(leader, id, entry, label).await?;
    let hash = label::text(&entry.headers, HASH).map_err(|error| entry.unreadable(id, &error))?;
    Content::read(&content, hash).map_err(|error| entry.unreadable(id, &error))
}
