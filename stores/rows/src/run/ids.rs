//! The ids that the events of a turn share.

use everturn_wire::ConversationId;
use memchr::{memchr, memmem};

/// A conversation's id as it appears in the JSON of its events.
#[derive(Debug)]
pub struct Ids(Vec<u8>);

/// What precedes the turn's id.
const TURN_ID: &[u8] = br#","turnId":"#;

/// The ids with which the JSON of an event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'e> {
    Other,
    Conversation,
    /// The conversation's id and this turn's.
    Turn(&'e [u8]),
}

impl End<'_> {
    pub(super) fn letter(self) -> &'static [u8] {
        match self {
            Self::Other => b"",
            Self::Conversation => b"c",
            Self::Turn(_) => b"t",
        }
    }
}

impl Ids {
    /// Returns the ids of a conversation's events.
    pub fn of(conversation: &ConversationId) -> Self {
        // A string can always be serialized.
        let id = serde_json::to_string(conversation).unwrap_or_default();
        Self(format!(r#","conversationId":{id}"#).into_bytes())
    }

    /// Splits the JSON of an event into the part before its ids, and the ids.
    pub(super) fn part<'e>(&self, json: &'e [u8]) -> (&'e [u8], End<'e>) {
        let Some(open) = json.strip_suffix(b"}") else { return (json, End::Other) };
        if let Some(rest) = open.strip_suffix(&self.0[..]) {
            return (rest, End::Conversation);
        }
        let (rest, turn) = open.split_at(memmem::rfind(open, TURN_ID).unwrap_or(0));
        match rest.strip_suffix(&self.0[..]) {
            Some(rest) if memchr(b'\n', turn).is_none() => (rest, End::Turn(turn)),
            Some(_) | None => (json, End::Other),
        }
    }

    /// The part that [`Self::part`] removed from the JSON.
    pub(super) fn end<'a>(&'a self, end: End<'a>) -> [&'a [u8]; 3] {
        match end {
            End::Other => [b"", b"", b""],
            End::Conversation => [&self.0, b"", b"}"],
            End::Turn(turn) => [&self.0, turn, b"}"],
        }
    }
}
