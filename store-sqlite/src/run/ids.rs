//! The ids that events of a turn have in common.

use everturn_wire::ConversationId;
use memchr::{memchr, memmem};

/// The id of a conversation as the JSON of its events has it.
pub(crate) struct Ids(Vec<u8>);

/// Where the id of a turn begins that follows it.
const TURN_ID: &[u8] = br#","turnId":"#;

/// With which ids the JSON of an event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'e> {
    Other,
    Conversation,
    /// With that of a conversation and this one.
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
    pub(crate) fn of(conversation: &ConversationId) -> Self {
        // Text can always be written as JSON.
        let id = serde_json::to_string(conversation).unwrap_or_default();
        Self(format!(r#","conversationId":{id}"#).into_bytes())
    }

    /// The JSON of an event without its ids, and these.
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

    /// What [`Self::part`] took from the JSON.
    pub(super) fn end<'a>(&'a self, end: End<'a>) -> [&'a [u8]; 3] {
        match end {
            End::Other => [b"", b"", b""],
            End::Conversation => [&self.0, b"", b"}"],
            End::Turn(turn) => [&self.0, turn, b"}"],
        }
    }
}
