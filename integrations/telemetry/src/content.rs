//! The content of messages as attributes: JSON in the form of the GenAI conventions, redacted and bounded.
//!
//! Images and `data:` URLs are replaced by their type and size. Text is cut to a limit, and says so. Secrets are removed
//! before the final cut, because the rest of a cut secret might not be recognized.

mod answer;
mod arguments;
mod clip;
mod history;

use std::{fmt, io, sync::Arc};

use everturn_wire::Value;
use serde_json::json;

pub(crate) use answer::Answer;
pub(crate) use arguments::Arguments;
pub(crate) use history::History;

/// Maximum size of an attribute, in bytes. A batch of spans must stay below the usual request limit of collectors
/// (20 MiB).
pub(crate) const MAX_ATTRIBUTE: usize = 16 << 10;

/// Maximum size of one text of a history, in bytes, so that a long one leaves room for others.
const MAX_PART: usize = 8 << 10;

/// How much of a text is searched for secrets beyond what is exported, in bytes.
const SLACK: usize = 4 << 10;

/// Maximum size of an id or name, in bytes.
const MAX_NAME: usize = 128;

/// Size of a part without its text, at most: keys, an id, a name and the marks of cuts.
const OVERHEAD: usize = 640;

/// Removes secrets from a text before it is exported.
pub type Redact = Arc<dyn Fn(&mut String) + Send + Sync>;

/// Prepares content for export.
#[derive(Clone)]
pub(crate) struct Content {
    redact: Redact,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Content")
    }
}

impl Content {
    pub(crate) fn new(redact: Redact) -> Self {
        Self { redact }
    }

    /// Returns a text that takes at most `room` bytes of JSON, apart from the mark of a cut.
    pub(crate) fn text(&self, text: &str, room: usize) -> String {
        self.beginning(text, false, room)
    }

    /// The same for a text of which only the beginning was kept, if `is_cut`.
    fn beginning(&self, text: &str, is_cut: bool, room: usize) -> String {
        let (mut shown, left_out) = clip::without_data(text, is_cut, room + SLACK);
        (self.redact)(&mut shown);
        clip::cut(&mut shown, is_cut || left_out, room);
        shown
    }

    fn name(&self, name: &str) -> Value {
        self.text(name, MAX_NAME).into()
    }

    /// Returns a value of at most `room` bytes of JSON. A larger one becomes the beginning of its JSON, as a string.
    pub(crate) fn value(&self, value: &Value, room: usize) -> Value {
        let mut beginning = Beginning { bytes: Vec::new(), room: room + SLACK };
        let is_whole = serde_json::to_writer(&mut beginning, value).is_ok();
        if is_whole && beginning.bytes.len() <= room {
            let clean = self.clean(value);
            if clean.to_string().len() <= room {
                return clean;
            }
        }
        let text = String::from_utf8_lossy(&beginning.bytes);
        self.beginning(&text, !is_whole, room).into()
    }

    /// Writes a value as JSON of about `room` bytes. Text that is not JSON is written as it is.
    pub(crate) fn written(&self, value: &Value, room: usize) -> String {
        match self.value(value, room) {
            Value::String(text) => text,
            value => value.to_string(),
        }
    }

    /// Removes secrets from all strings of a small value.
    fn clean(&self, value: &Value) -> Value {
        let text = |text: &str| self.text(text, MAX_ATTRIBUTE);
        match value {
            Value::String(string) => text(string).into(),
            Value::Array(items) => items.iter().map(|item| self.clean(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (text(name), self.clean(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Returns a tool call as a part of a message.
    fn call(&self, id: &str, name: &str, arguments: &Value, room: usize) -> String {
        let arguments = self.value(arguments, room);
        json!({"type": "tool_call", "id": self.name(id), "name": self.name(name), "arguments": arguments})
            .to_string()
    }
}

/// Returns a text as a part of a message.
fn part(kind: &str, text: &str) -> String {
    json!({"type": kind, "content": text}).to_string()
}

/// Keeps the beginning of what is written, and fails when it is full.
struct Beginning {
    bytes: Vec<u8>,
    room: usize,
}

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        if taken == 0 && !bytes.is_empty() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
