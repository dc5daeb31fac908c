//! Estimates the size of a history.

use everturn_wire::{Chunk, Image};

use crate::json;

/// The estimated size of an image: about 1,500 tokens, similar to what providers charge. Its bytes say nothing about
/// it.
const IMAGE_BYTES: u64 = 6_000;

/// How much larger a PDF is than the text that a model reads in it, in base64. A guess: pages with pictures are larger.
const PDF_SHARE: u64 = 2;

/// Average number of bytes per token: the usual rule for English text.
const BYTES_PER_TOKEN: u64 = 4;

/// Returns the size of a chunk as a model sees it, in bytes.
pub(super) fn bytes(chunk: &Chunk) -> u64 {
    let images = |images: &[Image]| IMAGE_BYTES.saturating_mul(images.len() as u64);
    match chunk {
        Chunk::Text { text } | Chunk::Thinking { text, .. } | Chunk::System { text, .. } => text.len() as u64,
        Chunk::ToolCall { tool_name, input, .. } => tool_name.len().saturating_add(json::size(input)) as u64,
        Chunk::ToolResult { content, images: shown, .. } => content.len() as u64 + images(shown),
        Chunk::Image { url, mime_type } if Image::is_pdf(url, mime_type.as_deref()) => {
            IMAGE_BYTES.max(url.len() as u64 / PDF_SHARE)
        }
        Chunk::Image { .. } => IMAGE_BYTES,
        Chunk::Error(_) | Chunk::Unknown | _ => 0,
    }
}

/// Estimates the number of tokens of these chunks.
pub(in crate::session) fn tokens<'c>(chunks: impl IntoIterator<Item = &'c Chunk>) -> u64 {
    chunks.into_iter().map(bytes).sum::<u64>() / BYTES_PER_TOKEN
}
