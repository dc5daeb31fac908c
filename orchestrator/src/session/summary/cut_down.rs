//! Shortens a history to the task and the newest results, for a final report when nothing else fits.

use std::sync::Arc;

use everturn_wire::{Chunk, Role, StoredChunk};

use super::{cut::cut, size::bytes};
use crate::tool::excerpt;

/// The longest text kept, as a fraction of the whole history: an eighth.
const TEXT_SHARE: u64 = 8;

/// Texts are never cut below this size, in bytes.
const MIN_TEXT: usize = 512;

/// Returns the user's latest message and the newest part of the chunks, with the middle of long texts removed.
pub(in crate::session) fn cut_down(
    chunks: &[Arc<StoredChunk>],
    latest: Option<&str>,
) -> Vec<Arc<StoredChunk>> {
    let total: u64 = chunks.iter().map(|stored| bytes(&stored.chunk)).sum();
    let most = usize::try_from(total / TEXT_SHARE).unwrap_or(usize::MAX).max(MIN_TEXT);
    let (keeps_from, task) = match cut(chunks, latest) {
        Some(cut) => (cut.keeps_from, cut.task),
        None => (0, None),
    };
    let task = task.map(|text| {
        let chunk = Arc::new(Chunk::Text { text: excerpt(text, most) });
        Arc::new(StoredChunk { seq: 0, role: Role::User, chunk, supersedes: None })
    });
    let kept = chunks.iter().filter(|stored| stored.seq >= keeps_from);
    task.into_iter().chain(kept.map(|stored| shortened(stored, most))).collect()
}

fn shortened(stored: &Arc<StoredChunk>, most: usize) -> Arc<StoredChunk> {
    let chunk = match &*stored.chunk {
        Chunk::Text { text } if text.len() > most => Chunk::Text { text: excerpt(text.clone(), most) },
        Chunk::ToolResult { content, .. } if content.len() > most => {
            let mut chunk = (*stored.chunk).clone();
            if let Chunk::ToolResult { content, images, .. } = &mut chunk {
                *content = excerpt(std::mem::take(content), most);
                images.clear();
            }
            chunk
        }
        _ => return stored.clone(),
    };
    Arc::new(StoredChunk { chunk: Arc::new(chunk), ..(**stored).clone() })
}
