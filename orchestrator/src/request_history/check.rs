//! Checks whether a history is valid for a model.

use everturn_wire::{Chunk, Message, Role};

use crate::json;

/// Limits of a history: the number of chunks, and the size in bytes of JSON.
const MAX_CHUNKS: usize = 10_000;
const MAX_BYTES: usize = 32 << 20;

/// Maximum number of images in a message, or in the result of a tool.
pub(crate) const MAX_IMAGES: usize = 16;

/// Maximum length of an image's URL, in bytes.
pub(crate) const MAX_IMAGE: usize = 16 << 20;

/// Returns what is wrong with a history.
pub(super) fn check(messages: &[Message]) -> Result<(), String> {
    bounds(messages)?;
    let mut open: Vec<&str> = Vec::new();
    let mut has_begun = false;
    for (at, message) in messages.iter().enumerate() {
        has_begun |= message.role != Role::System;
        if message.chunks.is_empty() {
            return Err(format!("messages[{at}] has no chunks"));
        }
        if let (Some(id), true) = (open.first(), message.role != Role::Tool) {
            return Err(format!("messages[{at}] comes before the result of tool call {id:?}"));
        }
        if has_begun && message.role == Role::System {
            return Err(format!("messages[{at}] is a system message: these come first"));
        }
        for chunk in message.iter() {
            take(message.role, chunk, &mut open).map_err(|why| format!("messages[{at}]: {why}"))?;
        }
    }
    if let Some(id) = open.first() {
        return Err(format!("tool call {id:?} has no result in messages"));
    }
    match messages.last().map(|last| last.role) {
        Some(Role::User | Role::Tool) => Ok(()),
        Some(_) => Err("the last of the messages must be of the user or a tool".to_owned()),
        None => Err("messages is empty".to_owned()),
    }
}

/// Checks one chunk. `open`: the calls of the step that have no result yet.
fn take<'m>(role: Role, chunk: &'m Chunk, open: &mut Vec<&'m str>) -> Result<(), String> {
    match (role, chunk) {
        (Role::System, Chunk::System { text, .. } | Chunk::Text { text })
        | (Role::User | Role::Assistant, Chunk::Text { text }) => match text.is_empty() {
            true => Err("an empty text".to_owned()),
            false => Ok(()),
        },
        (Role::User, Chunk::Image { url, .. }) => match is_image_url(url) {
            true => Ok(()),
            false => Err("an image must be an https: URL, or a data:image/ or data:application/pdf URL in base64, of at most 16 MiB"
                .to_owned()),
        },
        (Role::Assistant, Chunk::Thinking { .. }) => Ok(()),
        (Role::Assistant, Chunk::ToolCall { tool_call_id, .. }) => {
            if tool_call_id.is_empty() || open.contains(&tool_call_id.as_str()) {
                return Err(format!("tool call id {tool_call_id:?} is empty or given more than once"));
            }
            open.push(tool_call_id);
            Ok(())
        }
        (Role::Tool, Chunk::ToolResult { tool_call_id, .. }) => {
            let at = open.iter().position(|id| id == tool_call_id);
            let at = at.ok_or_else(|| {
                format!("the result for {tool_call_id:?} has no tool call right before it, or is given more than once")
            })?;
            open.remove(at);
            Ok(())
        }
        (role, chunk) => Err(format!("a {role:?} message cannot have this chunk: {}", kind(chunk))),
    }
}

fn kind(chunk: &Chunk) -> &'static str {
    match chunk {
        Chunk::Text { .. } => "text",
        Chunk::Thinking { .. } => "thinking",
        Chunk::ToolCall { .. } => "tool-call",
        Chunk::ToolResult { .. } => "tool-result",
        Chunk::Error(_) => "error",
        Chunk::System { .. } => "system",
        Chunk::Image { .. } => "image",
        _ => "of an unknown type",
    }
}

fn bounds(messages: &[Message]) -> Result<(), String> {
    let chunks: usize = messages.iter().map(|message| message.chunks.len()).sum();
    if messages.len().max(chunks) > MAX_CHUNKS {
        return Err(format!("messages has {chunks} chunks, the most is {MAX_CHUNKS}"));
    }
    let size = json::size(messages);
    match size > MAX_BYTES {
        true => Err(format!("messages has {size} bytes, the most is {MAX_BYTES}")),
        false => Ok(()),
    }
}

/// Whether an image can be sent to every API: APIs take data in base64 only.
pub(crate) fn is_image_url(url: &str) -> bool {
    let kinds = ["data:image/", "data:application/pdf"];
    let is_data = |rest: &str| rest.split_once(',').is_some_and(|(form, _)| form.ends_with(";base64"));
    url.len() <= MAX_IMAGE
        && (url.starts_with("https:")
            || kinds.into_iter().any(|kind| url.strip_prefix(kind).is_some_and(is_data)))
}
