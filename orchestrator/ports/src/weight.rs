//! The approximate memory of content, in bytes.

use everturn_wire::{Chunk, Echo, StoredChunk, Value};

/// Approximate memory of a JSON value besides its text.
const VALUE: usize = 128;

/// Approximate memory of a chunk besides its content.
const CHUNK: usize = 256;

/// Returns the approximate memory of a chunk.
pub fn of_chunk(stored: &StoredChunk) -> usize {
    let content = match &*stored.chunk {
        Chunk::Text { text } | Chunk::System { text, .. } => text.len(),
        Chunk::Thinking { text, echo } => text.len() + echo.as_ref().map_or(0, of_echo),
        Chunk::ToolCall { tool_call_id, tool_name, input, echo, .. } => {
            tool_call_id.len() + tool_name.len() + of_value(input) + echo.as_ref().map_or(0, of_echo)
        }
        Chunk::ToolResult { tool_call_id, tool_name, content, images, .. } => {
            let images = images.iter().map(|image| image.url.len());
            tool_call_id.len() + tool_name.len() + content.len() + images.sum::<usize>()
        }
        Chunk::Image { url, .. } => url.len(),
        Chunk::Error(report) => report.message.len(),
        _ => 0,
    };
    CHUNK + content
}

/// Returns the approximate memory of opaque provider data.
pub fn of_echo(echo: &Echo) -> usize {
    echo.origin.len() + of_value(&echo.data)
}

/// Returns the approximate memory of a JSON value.
pub fn of_value(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(of_value).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + of_value(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE + inside
}
