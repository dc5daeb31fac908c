//! Packed storage for the events of a conversation.

use std::{iter, ops::Range};

use crate::{Cursor, StoredEvent};

/// Size from which a page takes no more events, in bytes, so that its content is not copied again and again.
const FULL: usize = 16 << 10;

/// The events of a conversation, packed into few allocations: most are shorter than the overhead of storing each by
/// itself.
#[derive(Debug, Default)]
pub(super) struct Events {
    pages: Vec<Page>,
}

/// Consecutive events, each preceded by its [`Head`].
#[derive(Debug)]
struct Page {
    /// Where the last event ends.
    end: Cursor,
    packed: Vec<u8>,
    /// Where `packed` contains the ending of one event. Others omit the part of it that they share: the ids of
    /// conversation and turn come last, and make up most of a short event.
    ending: Range<usize>,
}

/// Precedes an event: where it begins and ends, the length of its JSON without the shared ending, and how much of the
/// page's ending it shares.
struct Head {
    start: Cursor,
    end: Cursor,
    own: u32,
    shared: u32,
}

/// Maximum length of a page's ending, in bytes: enough for two ids.
const ENDING: usize = 192;

impl Events {
    /// Appends events.
    pub(super) fn extend(&mut self, events: &[StoredEvent]) {
        let Some(last) = events.last() else { return };
        match self.pages.last_mut() {
            Some(page) if page.packed.len() < FULL => {
                let ending = page.packed[page.ending.clone()].to_vec();
                page.extend(events, &ending);
            }
            _ => {
                let from = last.json.len().saturating_sub(ENDING);
                let mut page = Page { end: last.end, packed: Vec::new(), ending: 0..0 };
                page.extend(&events[..events.len() - 1], &last.json[from..]);
                page.extend(&events[events.len() - 1..], &[]);
                page.ending = page.packed.len() - (last.json.len() - from)..page.packed.len();
                self.pages.reserve_exact(1);
                self.pages.push(page);
            }
        }
    }

    /// Returns where the last event ends.
    pub(super) fn end(&self) -> Cursor {
        self.pages.last().map(|page| page.end).unwrap_or_default()
    }

    /// Drops the events that end at `cursor` or before, and returns their number.
    pub(super) fn drop_until(&mut self, cursor: Cursor) -> usize {
        if self.after(Cursor::default()).next().is_none_or(|first| first.end > cursor) {
            return 0;
        }
        let count = self.after(Cursor::default()).count();
        let rest: Vec<_> = self.after(cursor).collect();
        *self = Self::default();
        // One by one, because full pages take no more.
        rest.iter().for_each(|event| self.extend(std::slice::from_ref(event)));
        count - rest.len()
    }

    /// Returns the events that end after `cursor`.
    pub(super) fn after(&self, cursor: Cursor) -> impl Iterator<Item = StoredEvent> {
        let from = self.pages.partition_point(|page| page.end <= cursor);
        self.pages[from..].iter().flat_map(move |page| page.after(cursor))
    }
}

impl Page {
    fn extend(&mut self, events: &[StoredEvent], ending: &[u8]) {
        let heads: Vec<_> = events.iter().map(|event| Head::new(event, ending)).collect();
        let size = heads.iter().map(|head| Head::SIZE + head.own as usize).sum();
        // No spare capacity: most conversations stay idle for a long time after a commit.
        self.packed.reserve_exact(size);
        for (event, head) in events.iter().zip(heads) {
            self.end = head.end;
            head.write(&mut self.packed);
            self.packed.extend_from_slice(&event.json[..head.own as usize]);
        }
    }

    fn after(&self, cursor: Cursor) -> impl Iterator<Item = StoredEvent> {
        let mut rest = self.packed.as_slice();
        let events = iter::from_fn(move || {
            let (head, behind) = Head::read(rest)?;
            let (own, behind) = behind.split_at_checked(head.own as usize)?;
            rest = behind;
            Some((head, own))
        });
        events.skip_while(move |(head, _)| head.end <= cursor).map(|(head, own)| {
            let ending = &self.packed[self.ending.clone()];
            let json = [own, &ending[ending.len() - head.shared as usize..]].concat();
            StoredEvent { start: head.start, end: head.end, json: json.into() }
        })
    }
}

impl Head {
    const SIZE: usize = 24;

    fn new(event: &StoredEvent, ending: &[u8]) -> Self {
        let is_same = |(a, b): &(&u8, &u8)| a == b;
        let shared = event.json.iter().rev().zip(ending.iter().rev()).take_while(is_same).count();
        // An event is far shorter than 4 GiB, so 32 bits are enough.
        let (own, shared) = ((event.json.len() - shared) as u32, shared as u32);
        Self { start: event.start, end: event.end, own, shared }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.start.value().to_le_bytes());
        bytes.extend_from_slice(&self.end.value().to_le_bytes());
        bytes.extend_from_slice(&self.own.to_le_bytes());
        bytes.extend_from_slice(&self.shared.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (start, rest) = bytes.split_first_chunk()?;
        let (end, rest) = rest.split_first_chunk()?;
        let (own, rest) = rest.split_first_chunk()?;
        let (shared, rest) = rest.split_first_chunk()?;
        let [start, end] = [start, end].map(|at| Cursor::from_value(u64::from_le_bytes(*at)));
        let [own, shared] = [own, shared].map(|length| u32::from_le_bytes(*length));
        Some((Self { start, end, own, shared }, rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn what_was_added_comes_back_from_every_cursor_on(
            commits in vec(vec((0..9_u64, 1..9_u64, 0..3000_usize), 0..4), 0..20),
            after in 0..300_u64,
        ) {
            let (mut events, mut all, mut at) = (Events::default(), Vec::new(), 0);
            for commit in commits {
                // A restart leaves a gap.
                let added = commit.into_iter().map(|(gap, length, size)| {
                    let start = at + gap;
                    at = start + length;
                    let (start, end) = (Cursor::from_value(start), Cursor::from_value(at));
                    let ending = [r#""turnId":"a"}"#, r#""turnId":"b"}"#, "}", ""][at as usize % 4];
                    let json = ["x".repeat(size), ending.to_owned()].concat();
                    StoredEvent { start, end, json: json.into() }
                });
                let added: Vec<_> = added.collect();
                events.extend(&added);
                all.extend(added);
            }
            let after = Cursor::from_value(after);
            all.retain(|event| event.end > after);
            prop_assert_eq!(events.after(after).collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn dropped_events_are_gone_and_the_rest_is_as_it_was() {
        let (mut events, jsons) = (Events::default(), (0..1000).map(|n| format!("{n:0>100}")));
        add(&mut events, &jsons.collect::<Vec<_>>());
        let all: Vec<_> = events.after(Cursor::default()).collect();
        let mut gone = 0;
        for until in [0, 1, 1, 500, 3, 999, 1000, 1000] {
            gone += events.drop_until(Cursor::from_value(until));
            assert_eq!(events.after(Cursor::default()).collect::<Vec<_>>(), all[gone..], "{until}");
            assert_eq!(gone, gone.max(until as usize));
        }
    }

    fn add(events: &mut Events, jsons: &[String]) {
        let at = events.pages.last().map_or(0, |page| page.end.value());
        let events_at = |(n, json): (usize, &String)| {
            let start = at + n as u64;
            let [start, end] = [start, start + 1].map(Cursor::from_value);
            StoredEvent { start, end, json: json.clone().into() }
        };
        events.extend(&jsons.iter().enumerate().map(events_at).collect::<Vec<_>>());
    }

    #[test]
    fn a_page_keeps_nothing_to_spare_and_does_not_grow_for_ever() {
        let mut events = Events::default();
        for n in 0..1000 {
            add(&mut events, &[format!("{n:0>100}")]);
            let page = events.pages.last().unwrap();
            assert!(page.packed.len() < FULL + 200);
            assert_eq!(page.packed.capacity(), page.packed.len());
        }
        assert!((3..10).contains(&events.pages.len()), "{}", events.pages.len());
    }

    #[test]
    fn ids_are_kept_once() {
        let ids = r#""conversationId":"01234567-89ab-cdef-0123-456789abcdef","turnId":"01234567-89ab-cdef-0123-456789abcdef"}"#;
        let event = |kind: &str| format!(r#"{{"type":"{kind}",{ids}"#);
        let mut events = Events::default();
        add(&mut events, &[event("user-message"), event("turn-start")]);
        add(&mut events, &[event("provider-retry"), event("done"), event("turn-sealed")]);
        let packed = events.pages[0].packed.len();
        assert!(packed < ids.len() + 5 * (Head::SIZE + 24), "{packed}");
    }
}
