//! The token counts of an answer that is passed through: read once, at its end, from its last bytes.
//!
//! Providers put them at the end of an answer; in a stream of Messages, those of the request are at its start, too.

use bytes::Bytes;
use everturn_wire::{Usage, Value};
use memchr::memmem;
use serde::Deserialize;

use super::AnswerForm;
use crate::{anthropic, chat, gemini, responses};

/// How much of an answer is kept, in bytes: of its start and of its end. Twice the latter while it comes.
const HEAD: usize = 4 << 10;
const TAIL: usize = 8 << 10;

/// How much of the start of an event is kept, in bytes: enough for its name.
const START: usize = 64;

/// How many places are tried: chunks can have empty counts.
const TRIES: usize = 8;

/// The start and the end of an answer.
#[derive(Default)]
pub(super) struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The start of the event that is arriving, and whether its last line has anything in it.
    start: Vec<u8>,
    has_text: bool,
}

impl Ends {
    /// Takes the next bytes of the answer. Returns whether the provider's own end of it is among them, complete.
    pub(super) fn take(&mut self, form: AnswerForm, piece: &Bytes) -> bool {
        if form == AnswerForm::Messages && self.head.len() < HEAD {
            self.head.extend_from_slice(&piece[..piece.len().min(HEAD - self.head.len())]);
        }
        let last = &piece[piece.len().saturating_sub(TAIL)..];
        if self.tail.len() + last.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        }
        self.tail.extend_from_slice(last);
        let mut is_last = false;
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            self.start.extend_from_slice(&line[..line.len().min(START - self.start.len())]);
            self.has_text |= !line.trim_ascii().is_empty();
            if line.ends_with(b"\n") && !std::mem::take(&mut self.has_text) {
                is_last |= is_end(form, &self.start);
                self.start.clear();
            }
        }
        is_last
    }

    /// Returns the counts, if the answer has them where they are expected.
    pub(super) fn usage(&self, form: AnswerForm) -> Option<Usage> {
        match form {
            AnswerForm::Messages => {
                let read = |counts| anthropic::Counts::deserialize(counts).ok();
                let newest = last(&self.tail, "usage", read);
                let is_whole = |counts: &anthropic::Counts| counts.usage().input_tokens > 0;
                // At the end of a stream there may be only those of the answer.
                let mut counts = match newest.filter(is_whole) {
                    Some(_) => None,
                    None => first(&self.head, "usage").and_then(read),
                };
                match (&mut counts, newest) {
                    (Some(counts), Some(newest)) => counts.update(newest),
                    (None, newest) => counts = newest,
                    (Some(_), None) => {}
                }
                counts
                    .map(|counts| counts.usage())
                    .filter(|usage| usage.input_tokens > 0 || usage.output_tokens > 0)
            }
            AnswerForm::Gemini => last(&self.tail, "usageMetadata", |counts| {
                let counts = gemini::Counts::deserialize(counts).ok()?.usage();
                Some(counts).filter(|usage| usage.input_tokens > 0 || usage.output_tokens > 0)
            }),
            AnswerForm::Responses => last(&self.tail, "usage", |counts| responses::usage(&counts)),
            AnswerForm::Chat | AnswerForm::Opaque => {
                last(&self.tail, "usage", |counts| chat::usage(&counts).or_else(|| responses::usage(&counts)))
            }
        }
    }
}

/// Whether an event with this start is the end of an answer. In JSON, text cannot begin a line.
fn is_end(form: AnswerForm, start: &[u8]) -> bool {
    let ends: &[&[u8]] = match form {
        AnswerForm::Chat => &[b"[DONE]"],
        AnswerForm::Messages => &[b"message_stop"],
        AnswerForm::Responses => &[b"response.completed", b"response.incomplete"],
        // Gemini's streams end with their bodies.
        AnswerForm::Gemini | AnswerForm::Opaque => &[],
    };
    start.split(|byte| *byte == b'\n').any(|line| {
        let value = line.strip_prefix(b"event:").or_else(|| line.strip_prefix(b"data:")).unwrap_or_default();
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(br#"{"type":""#).unwrap_or(value);
        ends.iter().any(|end| value.starts_with(end))
    })
}

/// Returns the last object under this key that can be read.
fn last<T>(text: &[u8], key: &str, read: impl Fn(Value) -> Option<T>) -> Option<T> {
    let quoted = format!("\"{key}\"");
    let places = memmem::rfind_iter(text, &quoted).take(TRIES);
    places.filter_map(|at| object(&text[at + quoted.len()..])).find_map(read)
}

/// Returns the first object under this key.
fn first(text: &[u8], key: &str) -> Option<Value> {
    let quoted = format!("\"{key}\"");
    memmem::find_iter(text, &quoted).take(TRIES).find_map(|at| object(&text[at + quoted.len()..]))
}

/// Reads what follows a key. In a string, the key's quotes would be escaped.
fn object(after_key: &[u8]) -> Option<Value> {
    let value = after_key.trim_ascii_start().strip_prefix(b":")?;
    let read = serde_json::Deserializer::from_slice(value).into_iter::<Value>().next()?.ok()?;
    read.is_object().then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(form: AnswerForm, text: &str, piece: usize) -> Option<(u64, u64, Option<u64>, Option<u64>)> {
        let mut ends = Ends::default();
        text.as_bytes().chunks(piece).for_each(|piece| _ = ends.take(form, &Bytes::copy_from_slice(piece)));
        let usage = ends.usage(form)?;
        Some((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens))
    }

    #[test]
    fn counts_are_found_however_the_answer_is_split() {
        use AnswerForm::{Chat, Gemini, Messages, Opaque, Responses};
        let long = "data: {\"type\":\"x\",\"delta\":\"say \\\"usage\\\":{} \"}\n\n".repeat(2_000);
        let messages = format!(
            "event: message_start\ndata: {{\"message\":{{\"usage\":{{\"input_tokens\":10,\"cache_read_input_tokens\":30,\"output_tokens\":1}}}}}}\n\n{long}\
             data: {{\"type\":\"message_delta\",\"usage\":{{\"output_tokens\":7}}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"
        );
        let responses = format!(
            "{long}data: {{\"type\":\"response.completed\",\"response\":{{\"output\":[{{\"x\":\"usage\"}}],\"usage\":{{\"input_tokens\":9,\
             \"input_tokens_details\":{{\"cached_tokens\":4}},\"output_tokens\":5,\"output_tokens_details\":{{\"reasoning_tokens\":2}}}},\
             \"user\":null,\"metadata\":{{}}}}}}\n\n"
        );
        let chat = format!(
            "{long}data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":4}}}}\n\n\
             data: {{\"choices\":[],\"usage\":null}}\n\ndata: [DONE]\n\n"
        );
        let gemini = format!(
            "{long}data: {{\"usageMetadata\":{{\"promptTokenCount\":6,\"candidatesTokenCount\":1,\"thoughtsTokenCount\":2}},\"modelVersion\":\"m\"}}\n\n"
        );
        for (form, text, expected) in [
            (Messages, &*messages, Some((40, 7, Some(30), None))),
            (Responses, &*responses, Some((9, 5, Some(4), Some(2)))),
            (Chat, &*chat, Some((3, 4, None, None))),
            (Gemini, &*gemini, Some((6, 3, None, Some(2)))),
            (
                Messages,
                r#"{"content":[{"input":{"usage":{"output_tokens":99}}}],"usage": {"input_tokens":2,"output_tokens":3}}"#,
                Some((2, 3, None, None)),
            ),
            (
                Opaque,
                r#"{"data":[],"usage" : {"prompt_tokens":8,"total_tokens":8}}"#,
                Some((8, 0, None, None)),
            ),
            (Chat, r#"{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1}"}}]}"#, None),
            (Responses, r#"{"usage":{"input_tokens":"#, None),
            (Messages, "", None),
        ] {
            for piece in [1, 7, 1_000, usize::MAX] {
                assert_eq!(of(form, text, piece), expected, "{form:?} {piece}");
            }
        }
    }

    #[test]
    fn the_end_is_found_when_it_is_complete_however_the_stream_is_split() {
        use AnswerForm::{Chat, Gemini, Messages, Responses};
        let long = format!("{{\"type\":\"response.completed\",\"x\":\"{}\"}}", "y".repeat(1_000));
        for (form, text, is_last) in [
            (Chat, "data: {\"x\":\"\\ndata: [DONE]\"}\n\ndata: [DONE]\n\n".to_owned(), true),
            (Chat, "data: {\"x\":\"data: [DONE]\\n\\n\"}\n\n".to_owned(), false),
            (Messages, "event: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n".to_owned(), true),
            (Messages, "data: {\"type\":\"x\",\"y\":\"message_stop\"}\n\n".to_owned(), false),
            (Responses, format!(": x\n\nevent: response.completed\ndata: {long}\n\n"), true),
            (Responses, format!("data:{long}\n\n"), true),
            (Gemini, "data: [DONE]\n\n".to_owned(), false),
        ] {
            for size in [1, 7, usize::MAX] {
                let mut ends = Ends::default();
                let mut found: Vec<_> = text
                    .as_bytes()
                    .chunks(size)
                    .map(|piece| ends.take(form, &Bytes::copy_from_slice(piece)))
                    .collect();
                assert_eq!(found.pop(), Some(is_last), "{form:?} {size} {text}");
                assert!(found.iter().all(|is_last| !is_last), "too early: {form:?} {size} {text}");
                assert!(ends.start.is_empty());
            }
        }
    }

    #[test]
    fn little_of_an_answer_is_kept() {
        let mut ends = Ends::default();
        for size in [1, 100, 3 * TAIL, TAIL, 1, TAIL + 1, 1 << 20] {
            ends.take(AnswerForm::Messages, &Bytes::from(vec![b'x'; size]));
            assert!(ends.head.len() <= HEAD && ends.tail.len() <= 2 * TAIL);
        }
    }
}
