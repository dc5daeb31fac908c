//! The events of a conversation, packed.

use bytes::Bytes;

use crate::{Cursor, StoredEvent};

/// A page takes no further events from this size on, in bytes: those that come are not copied again and again.
const FULL: usize = 16 << 10;

/// The events of a conversation, packed into few allocations: most are shorter than what keeping each by itself takes.
#[derive(Debug, Default)]
pub(super) struct Events {
    pages: Vec<Page>,
}

/// Events, one behind the other: where each begins and ends, the length of its JSON, and that.
#[derive(Debug)]
struct Page {
    /// Where the last one ends.
    end: Cursor,
    packed: Vec<u8>,
}

/// What comes before an event's JSON.
const HEAD: usize = 20;

impl Events {
    /// Adds events behind those that are there.
    pub(super) fn extend(&mut self, events: &[StoredEvent]) {
        let Some(last) = events.last() else { return };
        let size = events.iter().map(|event| HEAD + event.json.len()).sum();
        let page = match self.pages.last_mut() {
            Some(page) if page.packed.len() < FULL => page,
            _ => {
                self.pages.reserve_exact(1);
                self.pages.push_mut(Page { end: last.end, packed: Vec::new() })
            }
        };
        // Nothing to spare: most conversations are left for long after a commit.
        page.packed.reserve_exact(size);
        page.end = last.end;
        for event in events {
            page.packed.extend_from_slice(&event.start.value().to_le_bytes());
            page.packed.extend_from_slice(&event.end.value().to_le_bytes());
            // Far below the limit of a message.
            page.packed.extend_from_slice(&(event.json.len() as u32).to_le_bytes());
            page.packed.extend_from_slice(&event.json);
        }
    }

    /// Those that end after `cursor`.
    pub(super) fn after(&self, cursor: Cursor) -> impl Iterator<Item = StoredEvent> {
        let from = self.pages.partition_point(|page| page.end <= cursor);
        let pages = self.pages[from..].iter();
        pages
            .flat_map(Page::events)
            .skip_while(move |(_, end, _)| *end <= cursor)
            .map(|(start, end, json)| StoredEvent { start, end, json: Bytes::copy_from_slice(json) })
    }
}

impl Page {
    fn events(&self) -> impl Iterator<Item = (Cursor, Cursor, &[u8])> {
        let mut rest = self.packed.as_slice();
        std::iter::from_fn(move || {
            let (start, behind) = rest.split_first_chunk()?;
            let (end, behind) = behind.split_first_chunk()?;
            let (length, behind) = behind.split_first_chunk()?;
            let (json, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = behind;
            let cursor = |bytes| Cursor::from_value(u64::from_le_bytes(bytes));
            Some((cursor(*start), cursor(*end), json))
        })
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
                    StoredEvent { start, end, json: vec![b'a' + (at % 26) as u8; size].into() }
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
    fn a_page_keeps_nothing_to_spare_and_does_not_grow_for_ever() {
        let mut events = Events::default();
        for n in 0..1000 {
            let (start, end) = (Cursor::from_value(n), Cursor::from_value(n + 1));
            events.extend(&[StoredEvent { start, end, json: vec![b'x'; 100].into() }]);
            let page = events.pages.last().unwrap();
            assert!(page.packed.len() < FULL + 200);
            assert_eq!(page.packed.capacity(), page.packed.len());
        }
        assert_eq!(events.pages.len(), 120_000_usize.div_ceil(FULL));
    }
}
