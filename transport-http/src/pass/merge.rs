//! Merges a provider's message into one that was begun without it.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::frames::delta;

/// Maximum size of what is searched for the beginning of a message, in bytes.
const MOST: usize = 1 << 20;

/// Replaces the first `message_start` of a stream by a change with its token counts. Everything else passes unchanged.
#[derive(Debug, Default)]
pub(super) struct Merger {
    /// What has arrived of an event that is not complete.
    held: BytesMut,
    /// Where its last line begins, and how far that was searched, so that no byte is searched twice.
    line: usize,
    searched: usize,
    is_done: bool,
}

impl Merger {
    /// Returns what passes of the next bytes.
    pub(super) fn take(&mut self, piece: Bytes) -> Bytes {
        if self.is_done {
            return piece;
        }
        self.held.extend_from_slice(&piece);
        let mut passed = BytesMut::new();
        while let Some(event) = self.event() {
            match usage_of_start(&event) {
                Some(usage) => {
                    self.is_done = true;
                    passed.extend_from_slice(&delta(&usage));
                    passed.extend_from_slice(&self.held.split());
                    return passed.freeze();
                }
                None => passed.extend_from_slice(&event),
            }
        }
        if self.held.len() > MOST {
            self.is_done = true;
            passed.extend_from_slice(&self.held.split());
        }
        passed.freeze()
    }

    /// Takes the first event that is complete: it ends with an empty line.
    fn event(&mut self) -> Option<BytesMut> {
        while let Some(length) = self.held[self.searched..].iter().position(|byte| *byte == b'\n') {
            let (start, end) = (self.line, self.searched + length);
            (self.line, self.searched) = (end + 1, end + 1);
            if matches!(&self.held[start..end], b"" | b"\r") {
                (self.line, self.searched) = (0, 0);
                return Some(self.held.split_to(end + 1));
            }
        }
        self.searched = self.held.len();
        None
    }

    /// Returns what is left at the end.
    pub(super) fn end(&mut self) -> Bytes {
        self.held.split().freeze()
    }
}

/// Returns the token counts of a `message_start` event.
fn usage_of_start(event: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(event).ok()?;
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data:")).collect();
    let data: Value = serde_json::from_str(&data.join("\n")).ok()?;
    let usage = &data["message"]["usage"];
    let told = || if usage.is_null() { serde_json::json!({ "output_tokens": 0 }) } else { usage.clone() };
    (data["type"] == "message_start").then(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_start_is_replaced_however_the_stream_is_split() {
        let before = "event: ping\ndata: {\"type\": \"ping\"}\n\n: x\n\n";
        let start = "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\r\n\r\n";
        let after = "event: a\ndata: {\"type\":\"message_start\"}\n\nevent: b\ndata: unfinished";
        let stream = format!("{before}{start}{after}");
        let changed = delta(&serde_json::json!({ "input_tokens": 9 }));
        let expected = format!("{before}{}{after}", std::str::from_utf8(&changed).unwrap());
        for at in 0..stream.len() {
            let mut merger = Merger::default();
            let mut passed = BytesMut::new();
            for piece in [&stream[..at], &stream[at..]] {
                passed.extend_from_slice(&merger.take(Bytes::copy_from_slice(piece.as_bytes())));
            }
            passed.extend_from_slice(&merger.end());
            assert_eq!(passed, expected.as_bytes(), "split at {at}");
        }
    }
}
