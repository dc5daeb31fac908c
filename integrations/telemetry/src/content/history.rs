//! The messages of a request.

use everturn_wire::{Chunk, Message, Role};
use serde_json::json;

use super::{Content, MAX_ATTRIBUTE, MAX_NAME, MAX_PART, OVERHEAD, clip, part};

/// The messages of a request, as attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// `gen_ai.system_instructions`; `None` = there are none.
    pub(crate) instructions: Option<String>,
    /// `gen_ai.input.messages`.
    pub(crate) messages: String,
}

impl History {
    pub(crate) fn new(content: &Content, messages: &[Message]) -> Self {
        let own = messages.iter().take_while(|message| message.role == Role::System).count();
        let (instructions, messages) = messages.split_at(own);
        let (parts, left_out) = newest(content, instructions);
        let mut parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
        if left_out > 0 {
            parts.insert(0, note(left_out));
        }
        Self {
            instructions: (!parts.is_empty()).then(|| format!("[{}]", parts.join(","))),
            messages: written(content, messages),
        }
    }
}

/// Writes the newest messages that fit.
fn written(content: &Content, messages: &[Message]) -> String {
    let (parts, left_out) = newest(content, messages);
    let mut all = Vec::new();
    if left_out > 0 {
        all.push(format!(r#"{{"role":"system","parts":[{}]}}"#, note(left_out)));
    }
    for of_message in parts.chunk_by(|(a, _), (b, _)| a == b) {
        let (number, _) = of_message[0];
        let parts: Vec<_> = of_message.iter().map(|(_, part)| part.as_str()).collect();
        all.push(format!(r#"{{"role":"{}","parts":[{}]}}"#, role(messages[number].role), parts.join(",")));
    }
    format!("[{}]", all.join(","))
}

/// Returns the newest parts that fit, oldest first, each with the number of its message, and how many are left out.
fn newest(content: &Content, messages: &[Message]) -> (Vec<(usize, String)>, usize) {
    // Of the note, and of each part's message.
    const NOTE: usize = 128;
    const MESSAGE: usize = 40;
    let mut room = MAX_ATTRIBUTE - NOTE;
    let (mut parts, mut left_out) = (Vec::new(), 0);
    let chunks =
        messages.iter().enumerate().flat_map(|(at, message)| message.iter().map(move |chunk| (at, chunk)));
    for (at, chunk) in chunks.collect::<Vec<_>>().into_iter().rev() {
        if room < OVERHEAD + MAX_NAME {
            left_out += 1;
        } else if let Some(part) = of_chunk(content, chunk, MAX_PART.min(room - OVERHEAD)) {
            room = room.saturating_sub(part.len() + MESSAGE);
            parts.push((at, part));
        }
    }
    parts.reverse();
    (parts, left_out)
}

fn of_chunk(content: &Content, chunk: &Chunk, room: usize) -> Option<String> {
    Some(match chunk {
        Chunk::Text { text } | Chunk::System { text, .. } => part("text", &content.text(text, room)),
        Chunk::Thinking { text, .. } if text.is_empty() => return None,
        Chunk::Thinking { text, .. } => part("reasoning", &content.text(text, room)),
        Chunk::ToolCall { tool_call_id, tool_name, input, .. } => {
            content.call(tool_call_id, tool_name, input, room)
        }
        Chunk::ToolResult { tool_call_id, content: result, images, .. } => {
            let mut text = content.text(result, room);
            if !images.is_empty() {
                let images = images.iter().map(|image| shown(&image.url, image.mime_type.as_deref()));
                text = content.text(&format!("{}\n{text}", images.collect::<Vec<_>>().join(" ")), room);
            }
            let id = content.name(tool_call_id);
            json!({"type": "tool_call_response", "id": id, "response": text}).to_string()
        }
        Chunk::Image { url, mime_type } => {
            let (media_type, bytes) = clip::image(url, mime_type.as_deref());
            let media_type = content.name(media_type);
            match bytes {
                Some(bytes) => json!({"type": "image", "mime_type": media_type, "size": bytes}),
                None => {
                    // A query may be a signature that grants access.
                    let uri = url.split(['?', '#']).next().unwrap_or_default();
                    json!({"type": "uri", "modality": "image", "uri": content.text(uri, room)})
                }
            }
            .to_string()
        }
        _ => return None,
    })
}

fn shown(url: &str, media_type: Option<&str>) -> String {
    match clip::image(url, media_type) {
        (media_type, Some(bytes)) => format!("[{media_type}, {bytes} bytes]"),
        (media_type, None) => format!("[{media_type}]"),
    }
}

fn note(left_out: usize) -> String {
    part("text", &format!("[{left_out} earlier parts left out]"))
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System | Role::Unknown => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        _ => "unknown",
    }
}
