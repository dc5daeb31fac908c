//! Echoes: encrypted reasoning, and whether a message was commentary or the answer.

use everturn_wire::{Echo, Value};
use serde_json::json;

use super::frame::Reasoning;
use crate::bulk::weight;

/// Reasoning to send back before the next piece of the answer, which it led to. The API rejects reasoning that leads to
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Retained {
    items: Vec<Value>,
}

impl Retained {
    /// Adds a reasoning item if it has encrypted content; without it, the API would look for a stored item, and nothing
    /// is stored. Returns the growth in bytes.
    pub(super) fn reasoning(&mut self, reasoning: Reasoning) -> usize {
        let Some(content) = reasoning.encrypted_content.filter(|content| !content.is_empty()) else {
            return 0;
        };
        let summary = reasoning.summary.unwrap_or_default();
        let mut item = json!({ "type": "reasoning", "summary": summary, "encrypted_content": content });
        if let Some(id) = reasoning.id.filter(|id| !id.is_empty()) {
            item["id"] = json!(id);
        }
        let grown = weight(&item);
        self.items.push(item);
        grown
    }

    /// Sets the phase of the next message.
    pub(super) fn phase(&mut self, phase: &str) {
        self.items.push(json!({ "type": "message", "phase": phase }));
    }

    pub(super) fn take(&mut self, origin: &str) -> Option<Echo> {
        let items = std::mem::take(&mut self.items);
        (!items.is_empty()).then(|| Echo { origin: origin.to_owned(), data: Value::Array(items) })
    }
}

/// What is sent back with the next item of a request.
#[derive(Debug, Default)]
pub(super) struct Returned {
    /// Reasoning items that precede it.
    pub(super) reasoning: Vec<Value>,
    /// The phase, if it is a message.
    pub(super) phase: Option<Value>,
}

impl Returned {
    /// Adds an echo if this origin issued it. Others cannot read it.
    pub(super) fn add(&mut self, echo: Option<&Echo>, origin: &str) {
        let own = echo.filter(|echo| echo.origin == origin);
        for item in own.and_then(|echo| echo.data.as_array()).into_iter().flatten() {
            match item["type"].as_str() {
                Some("reasoning") => self.reasoning.push(item.clone()),
                Some("message") => self.phase = item.get("phase").cloned(),
                _ => {}
            }
        }
    }
}
