//! The live tail of a conversation's event stream.

use std::collections::VecDeque;

use crate::{Cursor, Frame};

/// What the tail may hold before deltas are merged, and what it keeps of what the journal has, in bytes.
const MERGE_ABOVE: usize = 1 << 20;
const KEEP_JOURNALED: usize = 128 << 10;

/// The live tail of a conversation's event stream: all that is not in the journal yet, and the end of what is.
#[derive(Debug)]
pub(crate) struct EventLog {
    frames: VecDeque<Frame>,
    /// Where the stream ends.
    end: Cursor,
    /// Bytes held.
    cost: usize,
    /// Bytes held right after the last merge: merging again pays only when it has grown well beyond.
    merged_cost: usize,
}

impl EventLog {
    pub(crate) fn new(end: Cursor) -> Self {
        Self { frames: VecDeque::new(), end, cost: 0, merged_cost: 0 }
    }

    /// Where the stream ends.
    pub(crate) fn end(&self) -> Cursor {
        self.end
    }

    /// Where the tail begins.
    pub(crate) fn start(&self) -> Cursor {
        self.frames.front().map_or(self.end, Frame::start)
    }

    pub(crate) fn push(&mut self, frame: Frame) {
        self.end = frame.end();
        self.cost += frame.cost();
        self.frames.push_back(frame);
        if self.cost > MERGE_ABOVE && self.cost > 2 * self.merged_cost {
            let merged = Frame::merge(self.frames.make_contiguous());
            self.cost = merged.iter().map(Frame::cost).sum();
            self.merged_cost = self.cost;
            self.frames = merged.into();
        }
    }

    /// Forgets the oldest events that exceed what is kept. Called when all of them are in the journal.
    pub(crate) fn trim(&mut self) {
        while self.cost > KEEP_JOURNALED
            && let Some(frame) = self.frames.pop_front()
        {
            self.cost -= frame.cost();
        }
        self.merged_cost = self.merged_cost.min(self.cost);
    }

    /// Up to `limit` events after `cursor`, the first one parted where the cursor lies inside it. `None` when the tail
    /// does not reach back that far.
    pub(crate) fn after(&self, cursor: Cursor, limit: usize) -> Option<Vec<Frame>> {
        if cursor < self.start() {
            return None;
        }
        // Mostly it is the last one that is new.
        let newest = self.frames.len().saturating_sub(1);
        let from = match self.frames.back() {
            Some(last) if last.start() <= cursor => newest + usize::from(last.end() <= cursor),
            _ => self.frames.partition_point(|frame| frame.end() <= cursor),
        };
        let mut frames: Vec<_> = self.frames.range(from..).take(limit).cloned().collect();
        if let Some(first) = frames.first_mut()
            && first.start() < cursor
        {
            *first = first.rest(cursor);
        }
        Some(frames)
    }

    /// Everything after `cursor`, deltas merged: what the journal is given.
    pub(crate) fn merged_after(&self, cursor: Cursor) -> Vec<Frame> {
        Frame::merge(&self.after(cursor, usize::MAX).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::EventBody;

    use super::*;

    fn push(log: &mut EventLog, delta: &str) {
        let body = EventBody::TextDelta { delta: delta.into() };
        log.push(Frame::new(log.end(), &"c".into(), Some(&"t".into()), body));
    }

    #[test]
    fn a_flood_of_deltas_costs_about_its_text() {
        let mut log = EventLog::new(Cursor(0));
        for _ in 0..100_000 {
            push(&mut log, "word ");
        }
        assert!(log.cost < 2 * MERGE_ABOVE, "{}", log.cost);
        let text: usize =
            log.after(Cursor(250_000), usize::MAX).unwrap().iter().map(|f| f.end().0 as usize).max().unwrap();
        assert_eq!(text, 500_000);
    }

    #[test]
    fn the_oldest_events_are_forgotten() {
        let mut log = EventLog::new(Cursor(0));
        for _ in 0..5_000 {
            push(&mut log, "word ");
        }
        let before = log.end();
        push(&mut log, "now");
        log.trim();
        assert!(log.cost <= KEEP_JOURNALED && log.start() > Cursor(0) && log.start() <= before);
        assert!(log.after(Cursor(0), 1).is_none());
        assert_eq!(log.after(before, 9).unwrap().len(), 1);
    }
}
