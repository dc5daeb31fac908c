//! Deltas joined into one event.

use std::ops::Range;

use super::Frame;

/// Maximum length of joined deltas, in escaped bytes; each subscriber receives them as one event.
pub(super) const MAX_JOINED: u32 = 64 << 10;

/// The position of a delta's text in the event's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delta {
    /// Whether the text is reasoning.
    pub(super) reasoning: bool,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Delta {
    fn size(self) -> u32 {
        self.to - self.from
    }

    pub(super) fn range(self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

impl Frame {
    /// Joins runs of deltas of one kind into one event each, of bounded size. The text is copied as is, still escaped.
    pub(crate) fn merge(frames: &[Self]) -> Vec<Self> {
        let (mut merged, mut rest) = (Vec::new(), frames);
        while !rest.is_empty() {
            let (run, behind) = rest.split_at(Self::run(rest));
            merged.extend(Self::join(&run));
            rest = behind;
        }
        merged
    }

    /// The number of leading frames that can be joined into one event.
    pub(crate) fn run<'f>(frames: impl IntoIterator<Item = &'f Self>) -> usize {
        let mut frames = frames.into_iter();
        let Some(first) = frames.next() else { return 0 };
        let Some(kind) = first.delta else { return 1 };
        let (mut size, mut end) = (kind.size(), first.end);
        let joins = |frame: &&Self| {
            frame.delta.is_some_and(|delta| {
                size += delta.size();
                let is_next = std::mem::replace(&mut end, frame.end) == frame.start;
                is_next && delta.reasoning == kind.reasoning && size <= MAX_JOINED
            })
        };
        1 + frames.take_while(joins).count()
    }

    /// Joins a run into one event.
    pub(crate) fn join<'f>(run: &(impl IntoIterator<Item = &'f Self> + Clone)) -> Option<Self> {
        let mut frames = run.clone().into_iter();
        let first = frames.next()?;
        let (Some(place), Some(last)) = (first.delta, frames.last()) else { return Some(first.clone()) };
        let texts = || {
            let text = |frame: &'f Self| frame.delta.map(|delta| frame.json().get(delta.range()));
            run.clone().into_iter().filter_map(text).flatten()
        };
        let (before, after) = first.json().split_at(place.from as usize);
        let after = after.get(place.size() as usize..).unwrap_or_default();
        let size = texts().map(<[u8]>::len).sum::<usize>() + before.len() + after.len();
        let mut to = place.to;
        let mut joined = Self::envelope(first.start, last.end, size, |bytes| {
            let event_at = bytes.len();
            bytes.extend_from_slice(before);
            texts().for_each(|text| bytes.extend_from_slice(text));
            to = (bytes.len() - event_at) as u32;
            bytes.extend_from_slice(after);
        });
        joined.delta = Some(Delta { to, ..place });
        Some(joined)
    }
}
