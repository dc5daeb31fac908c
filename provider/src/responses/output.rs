//! Output items, and how later events refer to them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::exchange::Flaw;

/// Maximum number of items in one answer. A model that thinks between tool calls has dozens.
const MOST: usize = 1024;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
}

/// The identifiers that an event gives for its item. Servers omit some, use the same index for all items, or change the
/// id with each event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign<'a> {
    pub(super) kind: Kind,
    pub(super) id: Option<&'a str>,
    /// The id that the result of a call must have.
    pub(super) call_id: Option<&'a str>,
    /// The index in the output.
    pub(super) place: Option<u64>,
}

/// The form in which reasoning is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Full,
    Summary,
}

/// An output item.
#[derive(Debug)]
pub(super) struct Entry {
    kind: Kind,
    id: Option<Digest>,
    call_id: Option<Digest>,
    place: Option<u64>,
    /// Number of parts begun.
    pub(super) parts: u64,
    /// Whether its reasoning or a summary is shown.
    pub(super) voice: Option<Voice>,
    /// Whether an event with the item itself arrived.
    pub(super) met: bool,
    /// Whether its last event arrived.
    pub(super) ended: bool,
}

/// A hash of an id of any length.
type Digest = u64;

/// The items of an output, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Output {
    entries: Vec<Entry>,
}

impl Output {
    /// Returns the item that this event begins. The event may arrive twice.
    pub(super) fn begin(&mut self, sign: Sign<'_>) -> Result<usize, Flaw> {
        self.named(sign).map_or_else(|| self.add(sign), Ok)
    }

    /// Returns the item that this event continues or ends. Its first event may be missing.
    pub(super) fn find(&mut self, sign: Sign<'_>) -> Result<usize, Flaw> {
        self.named(sign).or_else(|| self.open(sign)).map_or_else(|| self.add(sign), Ok)
    }

    /// Returns the item with this id, unless the index shows that another item has the same id.
    pub(super) fn named(&self, sign: Sign<'_>) -> Option<usize> {
        let (id, call_id) = (digest(sign.id), digest(sign.call_id));
        self.entries.iter().rposition(|entry| {
            let named = (id.is_some() && entry.id == id) || (call_id.is_some() && entry.call_id == call_id);
            let elsewhere = entry.place.zip(sign.place).is_some_and(|(known, given)| known != given);
            named && entry.kind == sign.kind && !elsewhere
        })
    }

    pub(super) fn entry(&mut self, at: usize) -> &mut Entry {
        &mut self.entries[at]
    }

    /// Whether any item of this kind satisfies the predicate.
    pub(super) fn any(&self, kind: Kind, is_so: fn(&Entry) -> bool) -> bool {
        self.entries.iter().any(|entry| entry.kind == kind && is_so(entry))
    }

    /// Returns the latest matching item of this kind that has not ended. An index outweighs an id.
    fn open(&self, sign: Sign<'_>) -> Option<usize> {
        self.entries.iter().rposition(|entry| {
            let meant = match (entry.place, sign.place) {
                (Some(known), Some(given)) => known == given,
                _ => entry.id.is_none() || sign.id.is_none(),
            };
            meant && entry.kind == sign.kind && !entry.ended
        })
    }

    fn add(&mut self, sign: Sign<'_>) -> Result<usize, Flaw> {
        if self.entries.len() == MOST {
            return Err(Flaw::Excess(format!("the answer has more than {MOST} items")));
        }
        self.entries.push(Entry {
            kind: sign.kind,
            id: digest(sign.id),
            call_id: digest(sign.call_id),
            place: sign.place,
            parts: 0,
            voice: None,
            met: false,
            ended: false,
        });
        Ok(self.entries.len() - 1)
    }
}

fn digest(id: Option<&str>) -> Option<Digest> {
    id.filter(|id| !id.is_empty()).map(|id| {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        hasher.finish()
    })
}
