//! How large a history is, roughly.

use everturn_wire::{Chunk, Image};

use crate::json;

/// What an image counts as: some 1,500 tokens, about what providers charge for one. Its bytes say nothing.
const IMAGE_BYTES: u64 = 6_000;

/// Bytes of a token, on average: the usual rule for English text.
const BYTES_PER_TOKEN: u64 = 4;

/// The size of a chunk as a model sees it, in bytes.
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

/// About how many tokens these chunks are.
pub(in crate::session) fn tokens<'c>(chunks: impl IntoIterator<Item = &'c Chunk>) -> u64 {
    chunks.into_iter().map(bytes).sum::<u64>() / BYTES_PER_TOKEN
}
