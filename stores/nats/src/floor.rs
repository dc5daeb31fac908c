//! The floor: which of a conversation's events were dropped.

use async_nats::{HeaderMap, header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE};
use bytes::Bytes;
use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{
    entry::Entry,
    error::failed,
    label::{BORN, END, FORMAT, ID, SEALED, Unreadable, VERSION, number, text},
    leader::{Answer, Leader},
    marks::Mark,
};

/// Header: the last append that a base covers, or the last one below the floor.
pub(crate) const COVERS: &str = "Ev-Covers";
/// Header: how many events the conversation has up to there.
pub(crate) const EVENTS: &str = "Ev-Events";
/// Header: whether the appends below were deleted.
const PURGED: &str = "Ev-Purged";

/// Which of a conversation's events were dropped: those of sealed turns up to one. The default is that of a conversation
/// that has all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Floor {
    /// Where it is stored; 0 = nowhere.
    pub(crate) sequence: u64,
    /// The last append below it, before the one that sealed the last dropped turn. It may be deleted, like those before.
    pub(crate) at: Mark,
    /// The append that sealed the last dropped turn.
    pub(crate) sealed_at: u64,
    /// Events that end here or before are dropped.
    pub(crate) end: u64,
    /// Their number.
    pub(crate) events: u64,
    /// Whether the appends below were deleted.
    pub(crate) is_purged: bool,
}

impl Floor {
    /// Returns the floor of the conversation that began with the append `born`. Costs a request.
    pub(crate) async fn of(
        leader: &Leader,
        id: &ConversationId,
        born: &str,
    ) -> Result<Option<Self>, JournalError> {
        let found = Self::last(leader, id).await?;
        Ok(found.and_then(|(of, floor)| (of == born).then_some(floor)))
    }

    /// Returns what [`Self::store`] replaces: the floor, or where there is none, the default with what is left over of a
    /// removed conversation with the same name as its place.
    pub(crate) async fn to_raise(
        leader: &Leader,
        id: &ConversationId,
        born: &str,
    ) -> Result<Self, JournalError> {
        Ok(match Self::last(leader, id).await? {
            Some((of, floor)) if of == born => floor,
            Some((_, other)) => Self { sequence: other.sequence, ..Self::default() },
            None => Self::default(),
        })
    }

    /// Returns the last floor on the subject of this conversation, and the first append of the conversation that it is of.
    async fn last(leader: &Leader, id: &ConversationId) -> Result<Option<(String, Self)>, JournalError> {
        let Some(entry) = leader.last(&leader.names().floor(id)).await? else { return Ok(None) };
        Self::read(&entry).map(Some).map_err(|error| entry.unreadable(id, &error))
    }

    fn read(entry: &Entry) -> Result<(String, Self), Unreadable> {
        let headers = &entry.headers;
        let format = text(headers, VERSION)?.parse().map_err(|_| Unreadable::Header(VERSION))?;
        if format > FORMAT {
            return Err(Unreadable::Newer(format));
        }
        let floor = Self {
            sequence: entry.sequence,
            at: Mark::parse(text(headers, COVERS)?).ok_or(Unreadable::Header(COVERS))?,
            sealed_at: number(headers, SEALED)?,
            end: number(headers, END)?,
            events: number(headers, EVENTS)?,
            is_purged: text(headers, PURGED)? == "yes",
        };
        Ok((text(headers, BORN)?.to_owned(), floor))
    }

    /// Stores it in place of the one with its sequence, and returns it as it is stored. `None` if there is another by now.
    pub(crate) async fn store(
        self,
        leader: &Leader,
        id: &ConversationId,
        born: &str,
    ) -> Result<Option<Self>, JournalError> {
        let subject = leader.names().floor(id);
        let expected = self.sequence;
        let (mut patience, mine) = (leader.patience(), uuid::Uuid::new_v4().simple().to_string());
        loop {
            let what = match leader.store(&subject, self.headers(born, &mine, expected), Bytes::new()).await {
                Answer::Stored(sequence) => return Ok(Some(Self { sequence, ..self })),
                Answer::Full(what) => return Err(failed(&leader.place, &what)),
                Answer::TooLarge => return Err(failed(&leader.place, "its messages are limited too much")),
                Answer::Later(what) | Answer::Lost(what) => what,
                Answer::Conflict => "others are in progress".to_owned(),
            };
            let last = leader.last_within(&subject, &mut patience).await?;
            match last.as_ref().map(|last| (last.append_id(), last.sequence)) {
                Some((id, sequence)) if id == mine => return Ok(Some(Self { sequence, ..self })),
                last if last.map_or(0, |last| last.1) != expected => return Ok(None),
                _ => {}
            }
            if !patience.pause().await {
                return Err(failed(&leader.place, &what));
            }
        }
    }

    fn headers(&self, born: &str, id: &str, expected: u64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        headers.insert(VERSION, FORMAT.to_string());
        headers.insert(ID, id);
        headers.insert(BORN, born);
        headers.insert(COVERS, self.at.to_string());
        headers.insert(SEALED, self.sealed_at.to_string());
        headers.insert(END, self.end.to_string());
        headers.insert(EVENTS, self.events.to_string());
        headers.insert(PURGED, if self.is_purged { "yes" } else { "no" });
        headers
    }
}
