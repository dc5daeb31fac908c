//! The token counts of an answer that is passed through: read once, at its end, from its last bytes.
//!
//! Providers put them at the end of an answer; in a stream of Messages, those of the request are at its start, too.

use std::sync::LazyLock;

use everturn_wire::{Usage, Value};
use memchr::memmem::Finder;
use serde::Deserialize;

use super::AnswerForm;
use crate::{anthropic, chat, gemini, responses};

/// How much of an answer is kept, in bytes: of its start and of its end. Twice the latter while it comes.
const HEAD: usize = 4 << 10;
const TAIL: usize = 8 << 10;

/// How much of the start of an event is kept, in bytes: enough for its name.
const START: usize = 64;

/// A text to look for. Prepared once: that takes longer than to look through an event.
type Key = LazyLock<Finder<'static>>;

/// The key of the counts, and that in Gemini's API.
static USAGE: Key = Key::new(|| Finder::new(b"\"usage\""));
static USAGE_METADATA: Key = Key::new(|| Finder::new(b"\"usageMetadata\""));

/// The key of the reason of an answer's end.
static REASON: Key = Key::new(|| Finder::new(b"\"finish_reason\""));
static REASON_OF_GEMINI: Key = Key::new(|| Finder::new(b"\"finishReason\""));

/// How many places are tried: chunks can have empty counts.
const TRIES: usize = 8;

/// The start and the end of an answer.
#[derive(Default)]
pub(super) struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The start of the event that is arriving, its length so far, and whether its last line has anything in it.
    start: Vec<u8>,
    length: usize,
    has_text: bool,
}

impl Ends {
    /// Takes the next bytes of the answer. Returns whether they complete the provider's own end of it, after which comes nothing
    /// that a caller would miss, and the newest counts, where a stream has them before its end.
    pub(super) fn take(&mut self, form: AnswerForm, piece: &[u8]) -> (bool, Option<Usage>) {
        if form == AnswerForm::Messages && self.head.len() < HEAD {
            self.head.extend_from_slice(&piece[..piece.len().min(HEAD - self.head.len())]);
        }
        let last = &piece[piece.len().saturating_sub(TAIL)..];
        if self.tail.len() + last.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        }
        self.tail.extend_from_slice(last);
        let (mut is_last, mut newest, mut behind) = (false, None, piece.len());
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            behind -= line.len();
            self.length += line.len();
            self.start.extend_from_slice(&line[..line.len().min(START - self.start.len())]);
            self.has_text |= !line.trim_ascii().is_empty();
            if line.ends_with(b"\n") && !std::mem::take(&mut self.has_text) {
                // Of one that is long, the end.
                let end = self.tail.len().saturating_sub(behind);
                let event = &self.tail[end.saturating_sub(std::mem::take(&mut self.length))..end];
                is_last |= is_end(form, &self.start, event);
                if matches!(form, AnswerForm::Chat | AnswerForm::Gemini) {
                    newest = counts(form, event).or(newest);
                }
                self.start.clear();
            }
        }
        (is_last, newest)
    }

    /// Returns the counts, if the answer has them where they are expected.
    pub(super) fn usage(&self, form: AnswerForm) -> Option<Usage> {
        match form {
            AnswerForm::Messages => {
                let read = |counts| anthropic::Counts::deserialize(counts).ok();
                let newest = last(&self.tail, &USAGE, read);
                let is_whole = |counts: &anthropic::Counts| counts.usage().input_tokens > 0;
                // At the end of a stream there may be only those of the answer.
                let mut counts = match newest.filter(is_whole) {
                    Some(_) => None,
                    None => first(&self.head, &USAGE).and_then(read),
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
            _ => counts(form, &self.tail),
        }
    }
}

/// Returns the last counts in a part of an answer, where they are not divided.
fn counts(form: AnswerForm, text: &[u8]) -> Option<Usage> {
    match form {
        AnswerForm::Gemini => last(text, &USAGE_METADATA, |counts| {
            let counts = gemini::Counts::deserialize(counts).ok()?.usage();
            Some(counts).filter(|usage| usage.input_tokens > 0 || usage.output_tokens > 0)
        }),
        AnswerForm::Responses => last(text, &USAGE, |counts| responses::usage(&counts)),
        AnswerForm::Chat | AnswerForm::Opaque => {
            last(text, &USAGE, |counts| chat::usage(&counts).or_else(|| responses::usage(&counts)))
        }
        AnswerForm::Messages => None,
    }
}

/// Whether an event with this start and end is the end of an answer. In JSON, text cannot begin a line.
fn is_end(form: AnswerForm, start: &[u8], event: &[u8]) -> bool {
    let (ends, reason): (&[&[u8]], Option<&Key>) = match form {
        // What was used comes after the reason.
        AnswerForm::Chat => (&[b"[DONE]"], Some(&REASON)),
        AnswerForm::Gemini => (&[], Some(&REASON_OF_GEMINI)),
        AnswerForm::Messages => (&[b"message_stop"], None),
        AnswerForm::Responses => (&[b"response.completed", b"response.incomplete"], None),
        AnswerForm::Opaque => return false,
    };
    let is_named = start.split(|byte| *byte == b'\n').any(|line| {
        let value = line.strip_prefix(b"event:").or_else(|| line.strip_prefix(b"data:")).unwrap_or_default();
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(br#"{"type":""#).unwrap_or(value);
        ends.iter().any(|end| value.starts_with(end))
    });
    let is_text = |text: &[u8]| value(text).is_some_and(|value| value.starts_with(b"\""));
    is_named || reason.is_some_and(|reason| after(event, reason).any(is_text))
}

/// Returns the last object under this key that can be read. Keys are given with their quotes.
fn last<T>(text: &[u8], key: &Key, read: impl Fn(Value) -> Option<T>) -> Option<T> {
    // Finding all from the start is faster than one from the end.
    let places: Vec<_> = after(text, key).collect();
    places.into_iter().rev().take(TRIES).filter_map(object).find_map(read)
}

/// Returns the first object under this key.
fn first(text: &[u8], key: &Key) -> Option<Value> {
    after(text, key).take(TRIES).find_map(object)
}

/// Returns what follows a key, wherever it is.
fn after<'a>(text: &'a [u8], key: &'a Key) -> impl Iterator<Item = &'a [u8]> {
    key.find_iter(text).map(|at| &text[at + key.needle().len()..])
}

/// Returns what a text begins with after a key. In a string, the key's quotes would be escaped.
fn value(after_key: &[u8]) -> Option<&[u8]> {
    Some(after_key.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start())
}

fn object(after_key: &[u8]) -> Option<Value> {
    let read = serde_json::Deserializer::from_slice(value(after_key)?).into_iter::<Value>().next()?.ok()?;
    read.is_object().then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(form: AnswerForm, text: &str, piece: usize) -> Option<(u64, u64, Option<u64>, Option<u64>)> {
        let mut ends = Ends::default();
        text.as_bytes().chunks(piece).for_each(|piece| _ = ends.take(form, piece));
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
            (
                Chat,
                r#"{"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":399,"completion_tokens_details":{"reasoning_tokens":386}}}"#,
                Some((12, 387, None, Some(386))),
            ),
            (
                Chat,
                r#"{"usage":{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":3}}}"#,
                Some((12, 5, None, Some(3))),
            ),
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
            (Chat, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":null}]}\n\n".to_owned(), false),
            (Chat, "data: {\"choices\":[{\"delta\":{},\"finish_reason\": \"stop\"}]}\n\n".to_owned(), true),
            (Chat, "data: {\"x\":\"\\\"finish_reason\\\":\\\"stop\\\"\"}\n\n".to_owned(), false),
            (
                Gemini,
                format!("data: {{\"x\":\"{}\",\"finishReason\":\"STOP\"}}\n\n", "y".repeat(3 * TAIL)),
                true,
            ),
        ] {
            for size in [1, 7, usize::MAX] {
                let mut ends = Ends::default();
                let mut found: Vec<_> =
                    text.as_bytes().chunks(size).map(|piece| ends.take(form, piece)).collect();
                assert_eq!(found.pop().map(|found| found.0), Some(is_last), "{form:?} {size} {text}");
                assert!(found.iter().all(|found| !found.0), "too early: {form:?} {size} {text}");
                assert!(ends.start.is_empty());
            }
        }
    }

    #[test]
    fn counts_before_the_end_are_found_in_the_piece_that_completes_their_event() {
        let chunk = |tokens: u64| {
            format!(
                "data: {{\"candidates\":[],\"usageMetadata\":{{\"promptTokenCount\":6,\"candidatesTokenCount\":{tokens}}}}}\r\n\r\n"
            )
        };
        let text = format!("{}{}data: {{\"x\":1}}\r\n\r\n", chunk(1), chunk(2));
        for (size, expected) in [(1, vec![1, 2]), (chunk(1).len(), vec![1, 2]), (usize::MAX, vec![2])] {
            let mut ends = Ends::default();
            let pieces = text.as_bytes().chunks(size);
            let found = pieces.filter_map(|piece| ends.take(AnswerForm::Gemini, piece).1);
            assert_eq!(found.map(|usage| usage.output_tokens).collect::<Vec<_>>(), expected, "{size}");
        }
    }

    #[test]
    fn little_of_an_answer_is_kept() {
        let mut ends = Ends::default();
        for size in [1, 100, 3 * TAIL, TAIL, 1, TAIL + 1, 1 << 20] {
            ends.take(AnswerForm::Messages, &vec![b'x'; size]);
            assert!(ends.head.len() <= HEAD && ends.tail.len() <= 2 * TAIL);
        }
    }
}
