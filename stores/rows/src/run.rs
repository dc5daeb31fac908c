//! Runs of events, each stored in one row.
//!
//! The first line is the id of the events' turn, as in their JSON. Then, for each event, in order: `c` if its JSON ends
//! with the conversation's id, `t` if the turn's id follows (both are left out); how many positions of the stream it
//! takes; the length of what follows the colon; the colon; its JSON; a line feed. A text that is also in a chunk of the
//! same append is left out, too: then four more numbers come before the colon, the chunk's `seq`, the offset of the
//! text in the JSON, its offset in the chunk's JSON, and its length, in bytes.

mod ids;
mod text;

use everturn_ports::{Cursor, StoredEvent};
use memchr::memchr;

use ids::End;
pub use ids::Ids;
pub(crate) use text::Chunks;
use text::Repeated;

/// Maximum number of events in a run, and its size in bytes from which no event is added: readers read entire runs.
const EVENTS: usize = 256;
const BYTES: usize = 64 << 10;

/// A run of consecutive events.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) begins: Cursor,
    pub(crate) ends: Cursor,
    pub(crate) events: usize,
    /// The turn's id.
    turn: Option<Vec<u8>>,
    lines: Vec<u8>,
}

impl Run {
    /// An empty run.
    pub(crate) fn at(begins: Cursor) -> Self {
        Self { begins, ends: begins, events: 0, turn: None, lines: Vec::new() }
    }

    /// Adds an event if the run can take it; returns whether it did.
    pub(crate) fn push(&mut self, event: &StoredEvent, ids: &Ids, chunks: &mut Chunks) -> bool {
        if event.start != self.ends || self.events == EVENTS || self.lines.len() >= BYTES {
            return false;
        }
        let (json, end) = ids.part(&event.json);
        match (end, &self.turn) {
            (End::Turn(turn), Some(known)) if turn != known => return false,
            (End::Turn(turn), None) => self.turn = Some(turn.to_owned()),
            (End::Turn(_) | End::Conversation | End::Other, _) => {}
        }
        self.lines.extend_from_slice(end.letter());
        let places = event.end.value().saturating_sub(event.start.value());
        match chunks.repeated(json) {
            None => {
                self.lines.extend_from_slice(format!("{places},{}:", json.len()).as_bytes());
                self.lines.extend_from_slice(json);
            }
            Some(Repeated { seq, at, from, length }) => {
                let left = json.len() - length;
                let head = format!("{places},{left},{seq},{at},{from},{length}:");
                self.lines.extend_from_slice(head.as_bytes());
                self.lines.extend_from_slice(&json[..at]);
                self.lines.extend_from_slice(&json[at + length..]);
            }
        }
        self.lines.push(b'\n');
        (self.ends, self.events) = (event.end, self.events + 1);
        true
    }

    /// The run as it is stored.
    pub(crate) fn text(&self) -> Vec<u8> {
        [self.turn.as_deref().unwrap_or_default(), b"\n", &self.lines].concat()
    }
}

/// An event as stored in a run.
#[derive(Debug)]
pub struct Kept<'r> {
    /// Where it begins.
    pub start: Cursor,
    /// Where it ends.
    pub end: Cursor,
    json: &'r [u8],
    ids: End<'r>,
    repeated: Option<Repeated>,
}

impl Kept<'_> {
    /// The `seq` of the chunk that contains its text.
    pub fn refers_to(&self) -> Option<u64> {
        self.repeated.as_ref().map(|repeated| repeated.seq)
    }

    /// Restores the event, given the ids of its conversation and the JSON of the chunk that it refers to. `None` if the
    /// chunk does not fit.
    pub fn event(&self, ids: &Ids, chunk: &[u8]) -> Option<StoredEvent> {
        let (at, text) = match self.repeated {
            None => (0, &[][..]),
            Some(Repeated { at, from, length, .. }) => (at, chunk.get(from..)?.get(..length)?),
        };
        let (before, after) = self.json.split_at_checked(at)?;
        let [conversation, turn, end] = ids.end(self.ids);
        let json = [before, text, after, conversation, turn, end].concat();
        Some(StoredEvent { start: self.start, end: self.end, json: json.into() })
    }
}

/// The events of a run that begins at `begins`, or an error if the data is not a run.
pub fn events(begins: Cursor, run: &[u8]) -> impl Iterator<Item = Result<Kept<'_>, Malformed>> {
    let (turn, mut rest) = memchr(b'\n', run).map_or((run, run), |at| (&run[..at], &run[at + 1..]));
    let mut start = begins;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((kept, left)) = first(start, turn, rest) else {
            rest = &[];
            return Some(Err(Malformed));
        };
        (start, rest) = (kept.end, left);
        Some(Ok(kept))
    })
}

/// The stored data is not a run.
#[derive(Debug, thiserror::Error)]
#[error("events that cannot be read")]
pub struct Malformed;

/// The first event in the rest of a turn's run, and what follows it.
fn first<'r>(start: Cursor, turn: &'r [u8], run: &'r [u8]) -> Option<(Kept<'r>, &'r [u8])> {
    let (ids, run) = match run.split_first()? {
        (b'c', run) => (End::Conversation, run),
        (b't', run) => (End::Turn(turn), run),
        _ => (End::Other, run),
    };
    let (head, rest) = run.split_at_checked(memchr(b':', run)?)?;
    let numbers = str::from_utf8(head).ok()?.split(',').map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    let (places, length, repeated) = match numbers[..] {
        [places, length] => (places, length, None),
        [places, left, seq, at, from, length] => {
            let repeated = Repeated { seq, at: size(at)?, from: size(from)?, length: size(length)? };
            (places, left, Some(repeated))
        }
        _ => return None,
    };
    let (json, rest) = rest[1..].split_at_checked(size(length)?)?;
    let end = Cursor::from_value(start.value().checked_add(places)?);
    Some((Kept { start, end, json, ids, repeated }, rest.strip_prefix(b"\n")?))
}

fn size(number: u64) -> Option<usize> {
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{text::LONG, *};

    fn ids() -> Ids {
        Ids::of(&"a \"c\"".into())
    }

    fn event(start: u64, places: u64, json: &str) -> StoredEvent {
        let (start, end) = (Cursor::from_value(start), Cursor::from_value(start + places));
        StoredEvent { start, end, json: Bytes::copy_from_slice(json.as_bytes()) }
    }

    fn run(events: &[StoredEvent], chunks: &[(u64, &str)]) -> String {
        let mut texts = Chunks::default();
        for (seq, json) in chunks {
            texts.push(*seq, (*json).to_owned());
        }
        let mut run = Run::at(events[0].start);
        for event in events {
            assert!(run.push(event, &ids(), &mut texts));
        }
        assert_eq!((run.ends, run.events), (events[events.len() - 1].end, events.len()));
        String::from_utf8(run.text()).unwrap()
    }

    /// The events of a run, given the chunks that they may refer to.
    fn read(begins: u64, run: &str, chunks: &[(u64, &str)]) -> Option<Vec<StoredEvent>> {
        let whole = |kept: Kept<'_>| {
            let chunk = kept.refers_to().map(|seq| chunks.iter().find(|chunk| chunk.0 == seq));
            kept.event(&ids(), chunk.flatten().map_or(b"", |chunk| chunk.1.as_bytes()))
        };
        events(Cursor::from_value(begins), run.as_bytes()).map(|kept| whole(kept.ok()?)).collect()
    }

    #[test]
    fn what_chunks_do_not_have_is_kept_as_it_is() {
        let events = [event(5, 1, r#"{"a":":\n,"}"#), event(6, 0, "7"), event(6, 900, "\n")];
        let text = run(&events, &[(1, r#"{"text":"something else"}"#)]);
        assert_eq!(text, "\n1,12:{\"a\":\":\\n,\"}\n0,1:7\n900,1:\n\n");
        assert_eq!(read(5, &text, &[]).unwrap(), events);
    }

    #[test]
    fn a_text_that_a_chunk_has_is_kept_once() {
        let (first, second) = ("Ä \\\" 1 ".repeat(20), "\\\\2 ".repeat(30));
        let chunks = [(7, "{}".to_owned()), (8, format!(r#"{{"type":"text","text":"{first}{second}"}}"#))];
        let chunks = [(7, chunks[0].1.as_str()), (8, chunks[1].1.as_str())];
        let delta = |text: &str| format!(r#"{{"type":"text-delta","delta":"{text}","turnId":"t"}}"#);
        let events = [event(1, 9, &delta(&first)), event(10, 9, &delta(&second)), event(19, 1, r#"{"b":1}"#)];
        let text = run(&events, &chunks);
        assert!(!text.contains("1 ") && !text.contains("2 "), "{text}");
        assert_eq!(read(1, &text, &chunks).unwrap(), events);
        assert!(read(1, &text, &chunks[..1]).is_none(), "the chunk is missing");
        assert!(read(1, &text, &[chunks[0], (8, "{}")]).is_none(), "the chunk is another");
    }

    #[test]
    fn a_short_text_is_kept_twice() {
        let text = "x".repeat(LONG - 1);
        let chunk = format!(r#"{{"text":"{text}"}}"#);
        assert!(run(&[event(0, 1, &chunk)], &[(1, &chunk)]).contains(&text));
    }

    #[test]
    fn ids_are_kept_once() {
        let ids = r#","conversationId":"a \"c\"""#;
        let of_turn = |n: u64, turn: &str| event(n, 1, &format!(r#"{{"n":{n}{ids},"turnId":"{turn}"}}"#));
        let events = [
            event(0, 1, &format!(r#"{{"n":0{ids}}}"#)),
            of_turn(1, "t"),
            of_turn(2, "t"),
            event(3, 1, r#"{"n":3,"conversationId":"another","turnId":"t"}"#),
            event(4, 1, &format!(r#"{{"n":4{ids},"turnId":"t","more":1}}"#)),
            event(5, 1, &format!(r#"{{"n":5{ids},"turnId":7}}"#)),
        ];
        let text = run(&events[..4], &[]);
        let expected = ",\"turnId\":\"t\"\nc1,6:{\"n\":0\nt1,6:{\"n\":1\nt1,6:{\"n\":2\n1,";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(read(0, &text, &[]).unwrap(), events[..4]);
        for other in &events[4..] {
            let text = run(std::slice::from_ref(other), &[]);
            assert_eq!(read(other.start.value(), &text, &[]).unwrap(), std::slice::from_ref(other));
        }
        let mut run = Run::at(Cursor::from_value(1));
        assert!(run.push(&events[1], &self::ids(), &mut Chunks::default()));
        assert!(!run.push(&of_turn(2, "u"), &self::ids(), &mut Chunks::default()), "it is of another turn");
    }

    #[test]
    fn a_run_is_bounded_and_has_no_gap() {
        let push = |run: &mut Run, event: &StoredEvent| run.push(event, &ids(), &mut Chunks::default());
        let mut run = Run::at(Cursor::from_value(0));
        assert!(!push(&mut run, &event(1, 1, "1")), "there is a gap before it");
        assert!(push(&mut run, &event(0, 1, &"1".repeat(BYTES))));
        assert!(!push(&mut run, &event(1, 1, "1")), "it is large");
        let mut run = Run::at(Cursor::from_value(0));
        for n in 0..EVENTS as u64 {
            assert!(push(&mut run, &event(n, 1, "1")));
        }
        assert!(!push(&mut run, &event(EVENTS as u64, 1, "1")), "it has many");
    }

    #[test]
    fn what_is_no_run_is_told() {
        let (chunk, good) = ("{\"text\":\"long\"}", "\n1,2:{}\n4,2,9,1,9,4:{}\n");
        assert!(read(0, good, &[(9, chunk)]).is_some());
        for cut in 2..good.len() {
            let is_whole = cut == "\n1,2:{}\n".len();
            assert_eq!(read(0, &good[..cut], &[(9, chunk)]).is_some(), is_whole, "{:?}", &good[..cut]);
        }
        let bad =
            ["1:{}", ",2:{}", "-1,2:{}", "1,2,3:{}", "1,3:{}", "1,99:{}", "x", "1,2,9,3,0,1:{}", "d1,2:{}"];
        for bad in bad {
            assert!(read(0, &format!("\n{bad}\n"), &[(9, chunk)]).is_none(), "{bad:?}");
        }
        assert!(read(0, "1,2:{}", &[]).is_none(), "a line is missing");
    }
}
