//! The answer to a request, collected while it arrives.

use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::Value;

use super::{Content, MAX_ATTRIBUTE, OVERHEAD, SLACK, part};

/// Maximum number of parts that are kept.
pub(super) const MAX_PARTS: usize = 64;

/// The answer to a request so far. Keeps only what is exported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(super) parts: Vec<Part>,
    /// Size of what is kept, in bytes.
    pub(super) size: usize,
    left_out: usize,
    finish_reason: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Text or reasoning, by the conventions' name of its kind, and whether something is missing at its end.
    Text { kind: &'static str, text: String, is_cut: bool },
    /// A tool call, as JSON.
    Call(String),
}

impl Answer {
    /// Adds an event of the call.
    pub(crate) fn add(&mut self, content: &Content, event: &StreamEvent) {
        match event {
            StreamEvent::Text(text) => self.add_text("text", text),
            StreamEvent::Reasoning(text) => self.add_text("reasoning", text),
            StreamEvent::ToolCall(call) => self.add_call(content, call),
            StreamEvent::Finished(reason) => self.finish_reason = Some(named(content, reason)),
            StreamEvent::Failed(_) => self.finish_reason = Some("error".to_owned()),
            _ => {}
        }
    }

    fn room(&self) -> usize {
        (MAX_ATTRIBUTE + SLACK).saturating_sub(self.size)
    }

    fn add_text(&mut self, kind: &'static str, more: &str) {
        let (room, is_full) = (self.room(), self.parts.len() == MAX_PARTS);
        let kept = &more[..more.floor_char_boundary(room)];
        match self.parts.last_mut() {
            Some(Part::Text { kind: last, text, is_cut }) if *last == kind => {
                if !*is_cut {
                    text.push_str(kept);
                    self.size += kept.len();
                    *is_cut = kept.len() < more.len();
                }
            }
            _ if is_full || room == 0 => self.left_out += 1,
            _ => {
                let is_cut = kept.len() < more.len();
                self.size += kept.len();
                self.parts.push(Part::Text { kind, text: kept.to_owned(), is_cut });
            }
        }
    }

    fn add_call(&mut self, content: &Content, call: &ToolCall) {
        let room = self.room();
        if self.parts.len() == MAX_PARTS || room < OVERHEAD {
            self.left_out += 1;
            return;
        }
        let raw;
        let arguments = match &call.arguments {
            Arguments::Parsed(value) => value,
            Arguments::Malformed { raw: text, .. } => {
                raw = Value::String(text.clone());
                &raw
            }
        };
        let part = content.call(&call.id, &call.name, arguments, room.min(MAX_ATTRIBUTE) / 2);
        self.size += part.len();
        self.parts.push(Part::Call(part));
    }

    /// Returns `gen_ai.output.messages`; `None` = nothing has arrived.
    pub(crate) fn written(&self, content: &Content) -> Option<String> {
        if self.parts.is_empty() && self.finish_reason.is_none() {
            return None;
        }
        // Of the message and the note.
        const AROUND: usize = 384;
        let (mut room, mut left_out) = (MAX_ATTRIBUTE - AROUND, self.left_out);
        let mut parts = Vec::new();
        for of_answer in &self.parts {
            let part = match of_answer {
                Part::Text { kind, text, is_cut } if room > OVERHEAD => {
                    part(kind, &content.beginning(text, *is_cut, room - OVERHEAD))
                }
                Part::Call(call) if call.len() < room => call.clone(),
                Part::Text { .. } | Part::Call(_) => {
                    left_out += 1;
                    continue;
                }
            };
            room -= part.len() + 1;
            parts.push(part);
        }
        if left_out > 0 {
            parts.push(part("text", &format!("[{left_out} further parts left out]")));
        }
        // Without a terminal event, the call was dropped.
        let reason = Value::from(self.finish_reason.as_deref().unwrap_or("cancelled"));
        let parts = parts.join(",");
        Some(format!(r#"[{{"role":"assistant","parts":[{parts}],"finish_reason":{reason}}}]"#))
    }
}

/// Returns the conventions' name of a reason.
fn named(content: &Content, reason: &FinishReason) -> String {
    match reason {
        FinishReason::Stop => "stop".to_owned(),
        FinishReason::ToolCalls => "tool_call".to_owned(),
        FinishReason::Length => "length".to_owned(),
        FinishReason::ContentFilter => "content_filter".to_owned(),
        FinishReason::Other(other) => content.text(other, super::MAX_NAME),
        _ => "other".to_owned(),
    }
}
