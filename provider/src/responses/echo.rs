//! What the API wants back: reasoning that it encrypted, and whether a message was a comment or the answer.

use everturn_wire::{Echo, Value};
use serde_json::json;

use super::frame::Reasoning;
use crate::bulk::weight;

/// What is to go back before the next piece of an answer, which it led to: the API refuses reasoning that leads to
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Retained {
    items: Vec<Value>,
}

impl Retained {
    /// Keeps a reasoning item. Without its encrypted content the API would look for it among what it stored: nothing.
    /// Says by how many bytes it grew.
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

    /// Keeps the phase of the message that comes next.
    pub(super) fn phase(&mut self, phase: &str) {
        self.items.push(json!({ "type": "message", "phase": phase }));
    }

    pub(super) fn take(&mut self, origin: &str) -> Option<Echo> {
        let items = std::mem::take(&mut self.items);
        (!items.is_empty()).then(|| Echo { origin: origin.to_owned(), data: Value::Array(items) })
    }
}

/// What goes back with the next item of a request.
#[derive(Debug, Default)]
pub(super) struct Returned {
    /// Reasoning items, which come before it.
    pub(super) reasoning: Vec<Value>,
    /// Its phase, if it is a message.
    pub(super) phase: Option<Value>,
}

impl Returned {
    /// Takes in what an endpoint gave, if it was this one: nobody else can read it.
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
