//! The live tail of a conversation's event stream.

use std::collections::VecDeque;

use crate::{Cursor, Frame};

/// Size above which the tail merges deltas, and maximum size of journaled events that it keeps, in bytes.
const MERGE_ABOVE: usize = 1 << 20;
const KEEP_JOURNALED: usize = 128 << 10;

/// Maximum number of deltas joined into one event for a lagging subscriber; joining briefly blocks the turn.
const JOINED_AT_ONCE: usize = 1024;

/// The live tail of a conversation's event stream: all events not yet in the journal, and the newest ones that are.
#[derive(Debug)]
pub(crate) struct EventLog {
    frames: VecDeque<Frame>,
    /// The end of the stream.
    end: Cursor,
    /// Bytes held.
    cost: usize,
    /// Bytes held right after the last merge; merging again pays off only after substantial growth.
    merged_cost: usize,
    /// The deltas joined last: subscribers that lag equally share the same bytes.
    joined: Option<Frame>,
}

impl EventLog {
    pub(crate) fn new(end: Cursor) -> Self {
        Self { frames: VecDeque::new(), end, cost: 0, merged_cost: 0, joined: None }
    }

    /// The end of the stream.
    pub(crate) fn end(&self) -> Cursor {
        self.end
    }

    /// The start of the tail.
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

    /// Drops the oldest events beyond the size limit. Must be called only when all events are in the journal.
    pub(crate) fn trim(&mut self) {
        while self.cost > KEEP_JOURNALED
            && let Some(frame) = self.frames.pop_front()
        {
            self.cost -= frame.cost();
        }
        self.merged_cost = self.merged_cost.min(self.cost);
        self.joined = None;
    }

    /// Returns up to `limit` events after `cursor`, splitting the first one if the cursor lies inside it. `None` = the
    /// tail does not reach back that far.
    pub(crate) fn after(&self, cursor: Cursor, limit: usize) -> Option<Vec<Frame>> {
        if cursor < self.start() {
            return None;
        }
        let mut frames: Vec<_> = self.frames.range(self.index_after(cursor)..).take(limit).cloned().collect();
        if let Some(first) = frames.first_mut()
            && first.start() < cursor
        {
            *first = first.rest(cursor);
        }
        Some(frames)
    }

    /// The index of the first event that ends after `cursor`.
    fn index_after(&self, cursor: Cursor) -> usize {
        match self.frames.back() {
            // Fast path: usually only the last event is new, as each subscriber asks after each delta.
            Some(last) if last.start() <= cursor => self.frames.len() - usize::from(cursor < last.end()),
            _ => self.frames.partition_point(|frame| frame.end() <= cursor),
        }
    }

    /// Like [`after`](Self::after), but for a subscriber: several pending deltas are joined into one event, made once
    /// for all subscribers. Never waits for more events.
    pub(crate) fn ready(&mut self, cursor: Cursor, limit: usize) -> Option<Vec<Frame>> {
        if let Some(joined) = self.joined.as_ref().filter(|joined| joined.start() == cursor) {
            return Some(vec![joined.clone()]);
        }
        let from = self.index_after(cursor);
        let is_whole = self.frames.get(from).is_some_and(|frame| frame.start() == cursor);
        let run = || self.frames.range(from..).take(JOINED_AT_ONCE);
        let count = if is_whole { Frame::run(run()) } else { 1 };
        if count < 2 {
            // Up to the next delta, which may begin a run.
            let others =
                self.frames.range(self.frames.len().min(from + 1)..).take_while(|frame| !frame.is_delta());
            let limit = 1 + others.take(limit.saturating_sub(1)).count();
            return self.after(cursor, limit);
        }
        self.joined = Frame::join(&run().take(count));
        self.joined.clone().map(|joined| vec![joined])
    }

    /// Returns everything after `cursor` with deltas merged, for the journal.
    pub(crate) fn merged_after(&self, cursor: Cursor) -> Vec<Frame> {
        Frame::merge(&self.after(cursor, usize::MAX).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::{AgentEvent, EventBody};
    use proptest::{collection::vec, prelude::*, sample::Index};

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

    fn body(frame: &Frame) -> EventBody {
        serde_json::from_slice::<AgentEvent>(&frame.event()).unwrap().body
    }

    fn one(log: &mut EventLog, cursor: Cursor) -> Frame {
        let mut ready = log.ready(cursor, 64).unwrap();
        assert_eq!(ready.len(), 1);
        ready.remove(0)
    }

    #[test]
    fn a_delta_that_is_alone_comes_as_it_is_and_a_run_is_joined_once_for_all() {
        let mut log = EventLog::new(Cursor(7));
        push(&mut log, "a");
        let first = one(&mut log, Cursor(7));
        assert_eq!(first.chat_delta().as_ptr(), log.frames[0].chat_delta().as_ptr());
        push(&mut log, "b");
        push(&mut log, "c");
        let joined = one(&mut log, first.end());
        assert_eq!(body(&joined), EventBody::TextDelta { delta: "bc".into() });
        push(&mut log, "d");
        // The next subscriber receives the same bytes, then the remainder.
        assert_eq!(one(&mut log, first.end()).chat_delta().as_ptr(), joined.chat_delta().as_ptr());
        assert_eq!(body(&one(&mut log, joined.end())), EventBody::TextDelta { delta: "d".into() });
        assert!(log.ready(log.end(), 64).unwrap().is_empty());
        log.trim();
        assert!(log.joined.is_none(), "nothing is held twice once the journal has it");
    }

    #[test]
    fn joining_holds_up_the_turn_for_a_bounded_time() {
        let mut log = EventLog::new(Cursor(0));
        for _ in 0..2 * JOINED_AT_ONCE {
            push(&mut log, "w");
        }
        assert_eq!(one(&mut log, Cursor(0)).end(), Cursor(JOINED_AT_ONCE as u64));
    }

    /// A step of the test: something is published, or one of three subscribers reads.
    #[derive(Clone, Debug)]
    enum Step {
        Text(String),
        Reasoning(String),
        Start,
        Trim,
        Read(Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        let text = "[a-z\"\\\\\n\u{fc}\u{2028}]{0,6}";
        prop_oneof![
            6 => text.prop_map(Step::Text),
            2 => text.prop_map(Step::Reasoning),
            1 => Just(Step::Start),
            1 => Just(Step::Trim),
            4 => any::<Index>().prop_map(Step::Read),
        ]
    }

    /// Concatenates the events as text, grouped by kind; joined deltas read the same as separate ones.
    fn transcript(events: &[EventBody]) -> String {
        let mut all = String::new();
        let mut kind = ' ';
        for event in events {
            let (next, text) = match event {
                EventBody::TextDelta { delta } => ('T', delta.as_str()),
                EventBody::ReasoningDelta { delta } => ('R', delta.as_str()),
                _ => ('S', "|"),
            };
            if next != kind {
                all.push(next);
            }
            (kind, all) = (next, all + text);
        }
        all
    }

    proptest! {
        #[test]
        fn every_subscriber_is_told_everything_in_order_however_it_is_joined(
            steps in vec(step(), 1..80),
            limit in 1..5_usize,
        ) {
            let mut log = EventLog::new(Cursor(3));
            let (mut told, mut seen) = (Vec::new(), vec![(Cursor(3), Vec::new()); 3]);
            let read = |log: &mut EventLog, (cursor, events): &mut (Cursor, Vec<EventBody>)| {
                for frame in log.ready(*cursor, limit).expect("the log is never so long that it forgets") {
                    assert_eq!(frame.start(), *cursor, "nothing is left out, and nothing comes twice");
                    (*cursor, _) = (frame.end(), events.push(body(&frame)));
                }
            };
            for step in steps {
                let body = match step {
                    Step::Read(which) => {
                        let at = which.index(seen.len());
                        read(&mut log, &mut seen[at]);
                        continue;
                    }
                    Step::Trim => {
                        log.trim();
                        continue;
                    }
                    Step::Text(delta) => EventBody::TextDelta { delta },
                    Step::Reasoning(delta) => EventBody::ReasoningDelta { delta },
                    Step::Start => EventBody::TurnStart { retry_of: None, message_seq: None, supersedes: None },
                };
                told.push(body.clone());
                log.push(Frame::new(log.end(), &"c".into(), Some(&"t".into()), body));
            }
            for subscriber in &mut seen {
                while subscriber.0 < log.end() {
                    read(&mut log, subscriber);
                }
                prop_assert_eq!(transcript(&subscriber.1), transcript(&told));
            }
        }
    }
}
