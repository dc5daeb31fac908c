//! Shortens tool results that fill a model's context by themselves. What they were stays in the log.

use std::sync::Arc;

use everturn_kernel::Summary;
use everturn_wire::{Chunk, StoredChunk};

use super::{kept_from, size::bytes};
use crate::tool::excerpt;

/// The result of a tool is long if it has more than this fraction of the history: an eighth.
const LONG_SHARE: u64 = 8;

/// A long result is shortened to this fraction of the history: a sixteenth.
const SHORT_SHARE: u64 = 16;

/// Results are never shortened below this size, in bytes.
const MIN_RESULT: u64 = 1 << 10;

/// The model reads this in place of a summary.
const NOTE: &str = "Long results of tools were shortened, because they did not fit the model's context. Ask for less at once.";

/// Shortens the long results in a history if a summary of what precedes `keeps_from` leaves more than three quarters of
/// it: it would hardly make room. Depends on the history alone, so every later request has the same.
pub(in crate::session) fn shorten(chunks: &mut [Arc<StoredChunk>], keeps_from: u64) {
    let size = |stored: &Arc<StoredChunk>| bytes(&stored.chunk);
    let total: u64 = chunks.iter().map(size).sum();
    let kept: u64 = chunks.iter().filter(|stored| stored.seq >= keeps_from).map(size).sum();
    if kept <= total / 4 * 3 {
        return;
    }
    let most = usize::try_from((total / SHORT_SHARE).max(MIN_RESULT)).unwrap_or(usize::MAX);
    for stored in chunks.iter_mut().filter(|stored| bytes(&stored.chunk) > total / LONG_SHARE) {
        if let Chunk::ToolResult { content, .. } = &*stored.chunk
            && content.len() > most
        {
            let mut chunk = (*stored.chunk).clone();
            if let Chunk::ToolResult { content, .. } = &mut chunk {
                *content = excerpt(std::mem::take(content), most);
            }
            *stored = Arc::new(StoredChunk { chunk: Arc::new(chunk), ..(**stored).clone() });
        }
    }
}

/// Returns a summary that only shortens the long results of this history, which has no older part to summarize; `None` =
/// that would not make it shorter by a quarter.
pub(in crate::session) fn shortened(chunks: &[Arc<StoredChunk>]) -> Option<Summary> {
    let total = |chunks: &[Arc<StoredChunk>]| chunks.iter().map(|stored| bytes(&stored.chunk)).sum::<u64>();
    let keeps_from = chunks.iter().find(|stored| kept_from(stored).is_none())?.seq;
    let mut after = chunks.to_vec();
    shorten(&mut after, keeps_from);
    if total(&after) > total(chunks) / 4 * 3 {
        return None;
    }
    let earlier = chunks.iter().find_map(|stored| match &*stored.chunk {
        Chunk::System { text, keeps_from: Some(_) } => Some(text.trim_end_matches(NOTE).trim_end()),
        _ => None,
    });
    let earlier = earlier.filter(|text| !text.is_empty()).map(|text| format!("{text}\n\n"));
    Some(Summary { text: earlier.unwrap_or_default() + NOTE, keeps_from })
}

#[cfg(test)]
mod tests {
    use everturn_wire::Role;

    use super::*;

    fn said(seq: u64, size: usize) -> Arc<StoredChunk> {
        let chunk = Chunk::Text { text: "t".repeat(size) };
        Arc::new(StoredChunk { seq, role: Role::User, chunk: Arc::new(chunk), supersedes: None })
    }

    fn result(seq: u64, size: usize) -> Arc<StoredChunk> {
        let chunk = Chunk::ToolResult {
            tool_call_id: "a".into(),
            tool_name: "read".into(),
            content: "r".repeat(size),
            is_error: false,
            step_id: None,
            images: Vec::new(),
            decisions: Vec::new(),
            questions: Vec::new(),
        };
        Arc::new(StoredChunk { seq, role: Role::Tool, chunk: Arc::new(chunk), supersedes: None })
    }

    fn sizes(mut chunks: Vec<Arc<StoredChunk>>, keeps_from: u64) -> Vec<u64> {
        shorten(&mut chunks, keeps_from);
        chunks.iter().map(|stored| bytes(&stored.chunk) / 1000).collect()
    }

    #[test]
    fn a_result_that_fills_the_context_is_shortened() {
        assert_eq!(sizes(vec![said(1, 1_000), result(2, 159_000)], 1), [1, 10]);
        assert_eq!(sizes(vec![said(1, 10_000), result(2, 150_000)], 2), [10, 10], "also beside a summary");
        assert_eq!(sizes(vec![result(1, 80_000), result(2, 9_000), result(3, 71_000)], 1), [10, 9, 10]);
    }

    #[test]
    fn what_leaves_room_beside_a_summary_stays() {
        assert_eq!(sizes(vec![said(1, 90_000), result(2, 70_000)], 2), [90, 70]);
        assert_eq!(sizes(vec![said(1, 160_000)], 1), [160], "and so does what no tool said");
        assert_eq!(shortened(&[said(1, 9_000), result(2, 500)]), None);
    }

    #[test]
    fn an_earlier_summary_stays_in_the_note() {
        let chunk = Arc::new(Chunk::System { text: "They met.".into(), keeps_from: Some(2) });
        let summary = Arc::new(StoredChunk { seq: 4, role: Role::System, chunk, supersedes: None });
        let note = shortened(&[summary, said(2, 10), result(3, 99_000)]).unwrap();
        assert_eq!((note.text, note.keeps_from), (format!("They met.\n\n{NOTE}"), 2));
    }
}
