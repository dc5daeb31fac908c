//! Finds texts that an event and a chunk share.

use memchr::{memchr, memchr2, memmem};

/// Length in bytes from which shared texts are stored only once.
pub(super) const LONG: usize = 64;

/// The chunks of an append; its events need not repeat their texts.
#[derive(Default)]
pub(crate) struct Chunks(Vec<Source>);

/// A chunk's JSON, and where the last text was found in it: usually the next one follows.
struct Source {
    seq: u64,
    json: String,
    after: usize,
}

/// A text of an event, `length` bytes at `at`, which is at `from` in the JSON of a chunk.
#[derive(Debug)]
pub(super) struct Repeated {
    pub(super) seq: u64,
    pub(super) at: usize,
    pub(super) from: usize,
    pub(super) length: usize,
}

impl Chunks {
    pub(crate) fn push(&mut self, seq: u64, json: String) {
        self.0.push(Source { seq, json, after: 0 });
    }

    pub(super) fn repeated(&mut self, json: &[u8]) -> Option<Repeated> {
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

/// The longest string in a piece of JSON, as written between its quotes, and its position.
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

/// The number of bytes before the closing quote of a string.
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
