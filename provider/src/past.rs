//! What was said before, as far as all APIs want it in the same form.

#[cfg(test)]
pub(crate) mod sample;

use std::borrow::Cow;

use everturn_wire::{Chunk, Message, Role, Value};
use serde_json::json;

/// The instructions, as one text.
pub(crate) fn instructions(messages: &[Message]) -> String {
    let system = messages.iter().filter(|message| message.role == Role::System);
    system.flat_map(|message| &message.chunks).filter_map(text).collect::<Vec<_>>().join("\n\n")
}

/// What a chunk says to the model: APIs refuse text of nothing or white space. Words of its reasoning are the model's own
/// and errors are for people: neither is sent.
pub(crate) fn text(chunk: &Chunk) -> Option<&str> {
    match chunk {
        Chunk::Text { text } | Chunk::System { text } => (!text.trim().is_empty()).then_some(text),
        Chunk::Thinking { .. }
        | Chunk::ToolCall { .. }
        | Chunk::ToolResult { .. }
        | Chunk::Error { .. }
        | Chunk::Image { .. } => None,
    }
}

/// The arguments of a call. APIs take nothing but objects, so those that never parsed are wrapped.
pub(crate) fn arguments(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        Value::Null => Cow::Owned(json!({})),
        malformed => Cow::Owned(json!({ "malformed": malformed })),
    }
}

/// The type and the base64 data of an image that is in its URL; `None` for one that is elsewhere. APIs know types by
/// their right names and without parameters.
pub(crate) fn inline<'a>(url: &'a str, mime_type: Option<&'a str>) -> Option<(&'a str, &'a str)> {
    let (named, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let named = match named.split(';').next() {
        None | Some("") => mime_type.unwrap_or("image/png"),
        Some(named) => named,
    };
    Some((if named == "image/jpg" { "image/jpeg" } else { named }, data))
}
