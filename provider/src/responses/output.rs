//! The items of an output, found again by what later events call them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::frame::Voice;
use crate::exchange::Flaw;

/// The most items of one answer. A model that thinks between the calls of its tools has dozens.
const MOST: usize = 1024;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
}

/// What an event says of the item it belongs to. Servers leave things out, give all items the same place, or call an
/// item something else in each event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign<'a> {
    pub(super) kind: Kind,
    pub(super) id: Option<&'a str>,
    /// What the result of a call is to name.
    pub(super) call_id: Option<&'a str>,
    /// Where it is in the output.
    pub(super) place: Option<u64>,
}

/// An item of the output.
#[derive(Debug)]
pub(super) struct Entry {
    kind: Kind,
    id: Option<Digest>,
    call_id: Option<Digest>,
    place: Option<u64>,
    /// How many of its parts have begun.
    pub(super) parts: u64,
    /// Whether its reasoning or a summary of it is shown.
    pub(super) voice: Option<Voice>,
    /// Whether an event came that has the item itself.
    pub(super) met: bool,
    /// Whether the last event of it came.
    pub(super) ended: bool,
}

/// An id, which may be of any length.
type Digest = u64;

/// The items of an output, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Output {
    entries: Vec<Entry>,
}

impl Output {
    /// The item that this event begins; the event may come twice.
    pub(super) fn begin(&mut self, sign: Sign<'_>) -> Result<usize, Flaw> {
        self.named(sign).map_or_else(|| self.add(sign), Ok)
    }

    /// The item that this event continues or ends, whose beginning may have been left out.
    pub(super) fn find(&mut self, sign: Sign<'_>) -> Result<usize, Flaw> {
        self.named(sign).or_else(|| self.open(sign)).map_or_else(|| self.add(sign), Ok)
    }

    /// The item of this name, unless its place says that another has the same.
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

    /// Whether some item of this kind is so.
    pub(super) fn any(&self, kind: Kind, is_so: fn(&Entry) -> bool) -> bool {
        self.entries.iter().any(|entry| entry.kind == kind && is_so(entry))
    }

    /// The latest of this kind that may be meant and has not ended. Places say more than names.
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
