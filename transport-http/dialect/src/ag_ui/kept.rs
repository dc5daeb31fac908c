//! The messages that a client has, so that a rewind can send those that remain.

use everturn_wire::Value;
use serde_json::json;

/// Maximum size of the message list kept for a rewind, in bytes.
const MOST: usize = 256 << 10;

/// The messages that a client has: those of its request, and those of the run. A list that is too long is not kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The messages as JSON, without the brackets of the list; `None` if they were too long.
    told: Option<String>,
    /// The messages of the current step, without text still being streamed.
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
    /// Starts with the messages of a request, given as a JSON list.
    pub fn of(list: &str) -> Self {
        let inner = list.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or_default();
        let told = Some(inner.trim().to_owned()).filter(|inner| inner.len() <= MOST);
        Self { size: inner.len(), told, step: Vec::new(), open: String::new() }
    }

    /// Starts without messages.
    pub fn none() -> Self {
        Self::of("[]")
    }

    /// Whether this many more bytes can be kept.
    fn has_room(&mut self, more: usize) -> bool {
        self.size += more;
        if self.size > MOST {
            (self.told, self.step, self.open) = (None, Vec::new(), String::new());
        }
        self.told.is_some()
    }

    /// Appends to the streamed text. `json`: as in JSON, without the quotes.
    pub(super) fn append(&mut self, json: &str) {
        if self.has_room(json.len()) {
            self.open.push_str(json);
        }
    }

    /// Adds the streamed text to the step's assistant message.
    pub(super) fn close_text(&mut self, id: &str) {
        let text = std::mem::take(&mut self.open);
        if self.told.is_some() {
            self.assistant(id, |content, _| content.push_str(&text));
        }
    }

    /// Adds the streamed text as the step's reasoning.
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

    /// Adds a call to the step's assistant message.
    pub(super) fn call(&mut self, id: &str, call: &str, name: &str, arguments: &str) {
        let function = json!({ "name": name, "arguments": arguments });
        let call = json!({ "id": call, "type": "function", "function": function });
        if self.has_room(arguments.len() + name.len() + 128) {
            self.assistant(id, |_, calls| calls.push(call));
        }
    }

    /// Adds a separate message.
    pub(super) fn message(&mut self, message: Value, size: usize) {
        if self.has_room(size + 128) {
            self.step.push(Message::Other(message));
        }
    }

    /// Changes the text and the calls of an assistant message, and creates it if necessary.
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

    /// Makes the step's messages permanent.
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

    /// Returns the messages that remain when the current step is rewound, as a JSON list. The step's reasoning remains
    /// without its text, because a client keeps all reasoning if the list has none. `None` if the messages are unknown.
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
