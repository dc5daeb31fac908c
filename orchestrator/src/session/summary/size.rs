//! Estimates the size of a history.

use everturn_wire::{Chunk, Image};

use crate::json;

/// The estimated size of an image: about 1,500 tokens, similar to what providers charge. Its bytes say nothing about
/// it.
const IMAGE_BYTES: u64 = 6_000;

/// Average number of bytes per token: the usual rule for English text.
const BYTES_PER_TOKEN: u64 = 4;

/// Returns the size of a chunk as a model sees it, in bytes.
pub(super) fn bytes(chunk: &Chunk) -> u64 {
    let images = |images: &[Image]| IMAGE_BYTES.saturating_mul(images.len() as u64);
    match chunk {
        Chunk::Text { text } | Chunk::Thinking { text, .. } | Chunk::System { text, .. } => text.len() as u64,
        Chunk::ToolCall { tool_name, input, .. } => tool_name.len().saturating_add(json::size(input)) as u64,
        Chunk::ToolResult { content, images: shown, .. } => content.len() as u64 + images(shown),
        Chunk::Image { .. } => IMAGE_BYTES,
        Chunk::Error(_) | Chunk::Unknown | _ => 0,
    }
}

/// Estimates the number of tokens of these chunks.
pub(in crate::session) fn tokens<'c>(chunks: impl IntoIterator<Item = &'c Chunk>) -> u64 {
    chunks.into_iter().map(bytes).sum::<u64>() / BYTES_PER_TOKEN
}
