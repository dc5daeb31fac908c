//! The messages that a client has, so that a rewind can say which of them stay.

use everturn_wire::Value;
use serde_json::json;

/// Longest list of messages that is kept for a rewind, in bytes.
const MOST: usize = 256 << 10;

/// The messages that a client has: those that its request brought, and those of the run. A long list is not kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// As they are written in a list, without its brackets; `None`: there were too many.
    told: Option<String>,
    /// The messages of the current step, but for the text that is being streamed.
    step: Vec<Message>,
    open: String,
    size: usize,
}

#[derive(Clone, Debug)]
enum Message {
    Assistant { id: String, content: String, calls: Vec<Value> },
    Reasoning { id: String, content: String },
    Other(Value),
}

impl Kept {
    /// The messages of a request, as the list that it brought.
    pub fn of(list: &str) -> Self {
        let inner = list.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or_default();
        let told = Some(inner.trim().to_owned()).filter(|inner| inner.len() <= MOST);
        Self { size: inner.len(), told, step: Vec::new(), open: String::new() }
    }

    /// No messages.
    pub fn none() -> Self {
        Self::of("[]")
    }

    /// Whether so many bytes more can be kept.
    fn has_room(&mut self, more: usize) -> bool {
        self.size += more;
        if self.size > MOST {
            (self.told, self.step, self.open) = (None, Vec::new(), String::new());
        }
        self.told.is_some()
    }

    /// Adds to what is being streamed. `json`: as JSON writes it, without the quotes.
    pub(super) fn append(&mut self, json: &str) {
        if self.has_room(json.len()) {
            self.open.push_str(json);
        }
    }

    /// What was streamed is text of the step's message of the assistant.
    pub(super) fn close_text(&mut self, id: &str) {
        let text = std::mem::take(&mut self.open);
        if self.told.is_some() {
            self.assistant(id, |content, _| content.push_str(&text));
        }
    }

    /// What was streamed is the step's reasoning.
    pub(super) fn close_reasoning(&mut self, of: &str) {
        let text = std::mem::take(&mut self.open);
        if self.told.is_none() {
            return;
        }
        for message in &mut self.step {
            if let Message::Reasoning { id, content } = message
                && id == of
            {
                return content.push_str(&text);
            }
        }
        self.step.push(Message::Reasoning { id: of.to_owned(), content: text });
    }

    /// Adds a call to the step's message of the assistant.
    pub(super) fn call(&mut self, id: &str, call: &str, name: &str, arguments: &str) {
        let function = json!({ "name": name, "arguments": arguments });
        let call = json!({ "id": call, "type": "function", "function": function });
        if self.has_room(arguments.len() + name.len() + 128) {
            self.assistant(id, |_, calls| calls.push(call));
        }
    }

    /// Adds a message of its own.
    pub(super) fn message(&mut self, message: Value, size: usize) {
        if self.has_room(size + 128) {
            self.step.push(Message::Other(message));
        }
    }

    /// Changes the text and the calls of a message of the assistant, which may be a new one.
    fn assistant(&mut self, of: &str, change: impl FnOnce(&mut String, &mut Vec<Value>)) {
        for message in &mut self.step {
            if let Message::Assistant { id, content, calls } = message
                && id == of
            {
                return change(content, calls);
            }
        }
        let (mut content, mut calls) = (String::new(), Vec::new());
        change(&mut content, &mut calls);
        self.step.push(Message::Assistant { id: of.to_owned(), content, calls });
    }

    /// The step's messages stay.
    pub(super) fn commit(&mut self) {
        let step = std::mem::take(&mut self.step);
        let Some(told) = &mut self.told else { return };
        for message in step {
            if !told.is_empty() {
                told.push(',');
            }
            message.write(told);
        }
    }

    /// The messages that stay when the current step is taken back, as a list. Its reasoning stays, without its text: a list
    /// without any reasoning would take none back. `None`: they are not known.
    pub(super) fn rewind(&mut self) -> Option<String> {
        let mut step = std::mem::take(&mut self.step);
        step.retain(|message| matches!(message, Message::Reasoning { .. }));
        let mut list = self.told.clone()?;
        for message in &mut step {
            if let Message::Reasoning { content, .. } = message {
                content.clear();
            }
            if !list.is_empty() {
                list.push(',');
            }
            message.write(&mut list);
        }
        Some(format!("[{list}]"))
    }
}

impl Message {
    fn write(&self, out: &mut String) {
        match self {
            Self::Assistant { id, content, calls } => {
                let id = json!(id);
                out.push_str(&format!(r#"{{"id":{id},"role":"assistant","content":"{content}""#));
                if !calls.is_empty() {
                    out.push_str(&format!(r#","toolCalls":{}"#, json!(calls)));
                }
                out.push('}');
            }
            Self::Reasoning { id, content } => {
                let id = json!(id);
                out.push_str(&format!(r#"{{"id":{id},"role":"reasoning","content":"{content}"}}"#));
            }
            Self::Other(message) => out.push_str(&message.to_string()),
        }
    }
}
