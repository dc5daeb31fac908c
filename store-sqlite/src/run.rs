//! Runs of events, as one row keeps them.
//!
//! For each event, in order: how many places of the stream it takes, the length of what follows the colon, the colon, its
//! JSON, a line feed. A text that a chunk of the same append has, too, is left out of the JSON. Then the numbers go on: the
//! chunk's `seq`, where in the JSON the text belongs, where it begins in the chunk's JSON, and its length, all in bytes.

use bytes::Bytes;
use everturn_orchestrator::{Cursor, StoredEvent};
use memchr::{memchr, memchr2, memmem};

/// The most events of a run, and the bytes from which on it takes no more: a reader takes in whole runs.
const EVENTS: usize = 256;
const BYTES: usize = 64 << 10;

/// Texts from this length on, in bytes, are not kept twice.
const LONG: usize = 64;

/// A run of events that follow one another.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) begins: Cursor,
    pub(crate) ends: Cursor,
    pub(crate) events: usize,
    pub(crate) text: Vec<u8>,
}

impl Run {
    /// A run without events.
    pub(crate) fn at(begins: Cursor) -> Self {
        Self { begins, ends: begins, events: 0, text: Vec::new() }
    }

    /// Whether it takes that event, too.
    pub(crate) fn takes(&self, event: &StoredEvent) -> bool {
        event.start == self.ends && self.events < EVENTS && self.text.len() < BYTES
    }

    /// Adds an event that it takes.
    pub(crate) fn push(&mut self, event: &StoredEvent, chunks: &mut Chunks) {
        let places = event.end.value().saturating_sub(event.start.value());
        let json: &[u8] = &event.json;
        match chunks.repeated(json) {
            None => {
                self.text.extend_from_slice(format!("{places},{}:", json.len()).as_bytes());
                self.text.extend_from_slice(json);
            }
            Some(Repeated { seq, at, from, length }) => {
                let left = json.len() - length;
                let head = format!("{places},{left},{seq},{at},{from},{length}:");
                self.text.extend_from_slice(head.as_bytes());
                self.text.extend_from_slice(&json[..at]);
                self.text.extend_from_slice(&json[at + length..]);
            }
        }
        self.text.push(b'\n');
        (self.ends, self.events) = (event.end, self.events + 1);
    }
}

/// The chunks of an append, whose texts its events need not repeat.
#[derive(Default)]
pub(crate) struct Chunks(Vec<Source>);

/// A chunk's JSON, and where the last text was found in it: the next one mostly follows.
struct Source {
    seq: u64,
    json: String,
    after: usize,
}

/// A text of an event, `length` bytes at `at`, that the JSON of a chunk has at `from`.
#[derive(Debug)]
struct Repeated {
    seq: u64,
    at: usize,
    from: usize,
    length: usize,
}

impl Chunks {
    pub(crate) fn push(&mut self, seq: u64, json: String) {
        self.0.push(Source { seq, json, after: 0 });
    }

    fn repeated(&mut self, json: &[u8]) -> Option<Repeated> {
        if self.0.is_empty() {
            return None;
        }
        let (at, text) = longest_text(json);
        if text.len() < LONG {
            return None;
        }
        self.0.iter_mut().find_map(|chunk| {
            let from = chunk.find(text)?;
            Some(Repeated { seq: chunk.seq, at, from, length: text.len() })
        })
    }
}

impl Source {
    fn find(&mut self, text: &[u8]) -> Option<usize> {
        let all = self.json.as_bytes();
        let from = if all[self.after..].starts_with(text) { self.after } else { memmem::find(all, text)? };
        self.after = from + text.len();
        Some(from)
    }
}

/// The longest string in a piece of JSON, as it is written between its quotes, and where it is.
fn longest_text(json: &[u8]) -> (usize, &[u8]) {
    let mut longest = (0, &json[..0]);
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &json[at..]) {
        let from = at + quote + 1;
        let to = from + string_length(&json[from..]);
        if to - from > longest.1.len() {
            longest = (from, &json[from..to]);
        }
        at = (to + 1).min(json.len());
    }
    longest
}

/// How many bytes there are up to the quote that ends a string.
fn string_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(b'"', b'\\', &rest[at..]) {
        if rest[at + found] == b'"' {
            return at + found;
        }
        at = (at + found + 2).min(rest.len());
    }
    rest.len()
}

/// An event as a run has it.
#[derive(Debug)]
pub(crate) struct Kept<'r> {
    pub(crate) start: Cursor,
    pub(crate) end: Cursor,
    json: &'r [u8],
    repeated: Option<Repeated>,
}

impl Kept<'_> {
    /// The `seq` of the chunk that has its text.
    pub(crate) fn refers_to(&self) -> Option<u64> {
        self.repeated.as_ref().map(|repeated| repeated.seq)
    }

    /// The event, given the JSON of the chunk that it refers to. `None`: that is not the chunk.
    pub(crate) fn event(&self, chunk: &[u8]) -> Option<StoredEvent> {
        let json = match self.repeated {
            None => Bytes::copy_from_slice(self.json),
            Some(Repeated { at, from, length, .. }) => {
                let text = chunk.get(from..)?.get(..length)?;
                let (before, after) = self.json.split_at_checked(at)?;
                [before, text, after].concat().into()
            }
        };
        Some(StoredEvent { start: self.start, end: self.end, json })
    }
}

/// The events of a run that begins there; an error if that is none.
pub(crate) fn events(begins: Cursor, run: &[u8]) -> impl Iterator<Item = Result<Kept<'_>, Malformed>> {
    let (mut start, mut rest) = (begins, run);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((kept, left)) = first(start, rest) else {
            rest = &[];
            return Some(Err(Malformed));
        };
        (start, rest) = (kept.end, left);
        Some(Ok(kept))
    })
}

/// What is in the place of a run is none.
#[derive(Debug, thiserror::Error)]
#[error("events that cannot be read")]
pub(crate) struct Malformed;

/// The first event of what is left of a run, and what follows it.
fn first(start: Cursor, run: &[u8]) -> Option<(Kept<'_>, &[u8])> {
    let (head, rest) = run.split_at_checked(memchr(b':', run)?)?;
    let mut numbers = str::from_utf8(head).ok()?.split(',').map(|number| number.parse::<u64>().ok());
    let mut next = || numbers.next().map_or(Some(None), |number| number.map(Some));
    let (places, length) = (next()??, usize::try_from(next()??).ok()?);
    let repeated = match next()? {
        None => None,
        Some(seq) => {
            let mut size = || usize::try_from(next()??).ok();
            Some(Repeated { seq, at: size()?, from: size()?, length: size()? })
        }
    };
    let (json, rest) = rest[1..].split_at_checked(length)?;
    let end = Cursor::from_value(start.value().checked_add(places)?);
    Some((Kept { start, end, json, repeated }, rest.strip_prefix(b"\n")?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(run.takes(event));
            run.push(event, &mut texts);
        }
        assert_eq!((run.ends, run.events), (events[events.len() - 1].end, events.len()));
        String::from_utf8(run.text).unwrap()
    }

    /// The events of a run, with the chunks that they may refer to.
    fn read(begins: u64, run: &str, chunks: &[(u64, &str)]) -> Option<Vec<StoredEvent>> {
        let whole = |kept: Kept<'_>| {
            let chunk = kept.refers_to().map(|seq| chunks.iter().find(|chunk| chunk.0 == seq));
            kept.event(chunk.flatten().map_or(b"", |chunk| chunk.1.as_bytes()))
        };
        events(Cursor::from_value(begins), run.as_bytes()).map(|kept| whole(kept.ok()?)).collect()
    }

    #[test]
    fn what_chunks_do_not_have_is_kept_as_it_is() {
        let events = [event(5, 1, r#"{"a":":\n,"}"#), event(6, 0, "7"), event(6, 900, "\n")];
        let text = run(&events, &[(1, r#"{"text":"something else"}"#)]);
        assert_eq!(text, "1,12:{\"a\":\":\\n,\"}\n0,1:7\n900,1:\n\n");
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
    fn a_run_is_bounded_and_has_no_gap() {
        let mut run = Run::at(Cursor::from_value(0));
        assert!(!run.takes(&event(1, 1, "1")), "there is a gap before it");
        let large = event(0, 1, &"1".repeat(BYTES));
        run.push(&large, &mut Chunks::default());
        assert!(!run.takes(&event(1, 1, "1")), "it is large");
        let mut run = Run::at(Cursor::from_value(0));
        for n in 0..EVENTS as u64 {
            assert!(run.takes(&event(n, 1, "1")));
            run.push(&event(n, 1, "1"), &mut Chunks::default());
        }
        assert!(!run.takes(&event(EVENTS as u64, 1, "1")), "it has many");
    }

    #[test]
    fn what_is_no_run_is_told() {
        let (chunk, good) = ("{\"text\":\"long\"}", "1,2:{}\n4,2,9,1,9,4:{}\n");
        assert!(read(0, good, &[(9, chunk)]).is_some());
        for cut in 1..good.len() {
            let is_whole = cut == "1,2:{}\n".len();
            assert_eq!(read(0, &good[..cut], &[(9, chunk)]).is_some(), is_whole, "{:?}", &good[..cut]);
        }
        for bad in
            ["1:{}\n", ",2:{}\n", "-1,2:{}\n", "1,2,3:{}\n", "1,3:{}\n", "1,99:{}\n", "x", "1,2,9,3,0,1:{}\n"]
        {
            assert!(read(0, bad, &[(9, chunk)]).is_none(), "{bad:?}");
        }
    }
}
