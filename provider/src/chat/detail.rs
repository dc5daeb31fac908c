//! OpenRouter's reasoning details: signed or encrypted pieces that must be sent back unchanged.

use std::mem;

use everturn_wire::Value;
use serde_json::Map;

use crate::bulk::{HEFT, weight};

/// Fields in which the text of a detail arrives in fragments. All other fields arrive complete.
const WORDS: [&str; 2] = ["text", "summary"];

/// The details of an answer, assembled from fragments.
#[derive(Debug, Default)]
pub(super) struct Details {
    whole: Vec<Map<String, Value>>,
}

impl Details {
    /// Adds a fragment. It continues the last detail if it has text and the same index and type, and the detail is not
    /// signed yet; more text would invalidate the signature. Returns the growth in bytes.
    pub(super) fn add(&mut self, piece: Map<String, Value>) -> usize {
        let same = |last: &Map<_, _>| ["index", "type"].iter().all(|&name| last.get(name) == piece.get(name));
        let worded = WORDS
            .iter()
            .any(|&name| piece.get("type").is_some_and(|kind| kind == &*format!("reasoning.{name}")));
        match self.whole.last_mut() {
            Some(last) if worded && same(last) && !(is_signed(last) && has_words(&piece)) => {
                join(last, piece)
            }
            _ => {
                let grown = piece.values().map(weight).sum::<usize>() + HEFT;
                self.whole.push(piece);
                grown
            }
        }
    }

    /// Takes all details; `None` if there are none.
    pub(super) fn take(&mut self) -> Option<Value> {
        let whole = mem::take(&mut self.whole);
        (!whole.is_empty()).then(|| whole.into_iter().map(Value::Object).collect())
    }
}

fn is_signed(detail: &Map<String, Value>) -> bool {
    detail.get("signature").is_some_and(|signature| !signature.is_null())
}

fn has_words(detail: &Map<String, Value>) -> bool {
    WORDS.iter().any(|&name| detail.get(name).and_then(Value::as_str).is_some_and(|words| !words.is_empty()))
}

fn join(last: &mut Map<String, Value>, piece: Map<String, Value>) -> usize {
    let mut grown = 0;
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(words)), Value::String(more)) if WORDS.contains(&&*name) => {
                words.push_str(&more);
                grown += more.len();
            }
            (before, value) => {
                let given_up = before.map_or(0, |before| weight(before));
                grown += (name.len() + weight(&value)).saturating_sub(given_up);
                last.insert(name, value);
            }
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn joined(pieces: &Value) -> Option<Value> {
        let mut details = Details::default();
        for piece in pieces.as_array().unwrap() {
            details.add(piece.as_object().unwrap().clone());
        }
        details.take()
    }

    #[test]
    fn text_is_joined_and_signatures_are_kept() {
        let pieces = json!([
            {"type": "reasoning.text", "index": 0, "text": "Let ", "signature": null},
            {"type": "reasoning.text", "index": 0, "text": "me see."},
            {"type": "reasoning.text", "index": 0, "signature": "abc", "format": "anthropic-claude-v1"},
            {"type": "reasoning.summary", "index": 1, "summary": "It "},
            {"type": "reasoning.summary", "index": 1, "summary": "is 4."},
        ]);
        let whole = json!([
            {"type": "reasoning.text", "index": 0, "text": "Let me see.", "signature": "abc",
             "format": "anthropic-claude-v1"},
            {"type": "reasoning.summary", "index": 1, "summary": "It is 4."},
        ]);
        assert_eq!(joined(&pieces), Some(whole));
    }

    #[test]
    fn signed_parts_are_complete_even_without_an_index() {
        let pieces = json!([
            {"type": "reasoning.text", "text": "a"},
            {"type": "reasoning.text", "text": "", "signature": "s1"},
            {"type": "reasoning.text", "text": "b"},
            {"type": "reasoning.text", "signature": "s2"},
        ]);
        let whole = json!([
            {"type": "reasoning.text", "text": "a", "signature": "s1"},
            {"type": "reasoning.text", "text": "b", "signature": "s2"},
        ]);
        assert_eq!(joined(&pieces), Some(whole));
    }

    #[test]
    fn encrypted_reasoning_is_never_joined() {
        let pieces = json!([
            {"type": "reasoning.encrypted", "index": 0, "data": "x"},
            {"type": "reasoning.encrypted", "index": 0, "data": "y"},
            {"type": "reasoning.text", "index": 1, "text": "a"},
            {"type": "reasoning.text", "index": 2, "text": "b"},
        ]);
        assert_eq!(joined(&pieces), Some(pieces));
        assert_eq!(joined(&json!([])), None);
    }
}
