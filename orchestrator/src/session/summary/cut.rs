//! Decides where a history is cut: the part before is summarized, the part after is kept.

use std::sync::Arc;

use everturn_wire::{Role, StoredChunk};

use super::{kept_from, size::bytes};
use crate::tool::excerpt;

/// The fraction of the history that is kept: the newest quarter.
const KEPT_SHARE: u64 = 4;

/// Maximum length of the user's current request that is kept verbatim when it is cut off, in bytes.
const MAX_TASK: usize = 16 << 10;

/// A history split in two.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct Cut {
    /// The older part.
    pub(super) older: Vec<Arc<StoredChunk>>,
    /// The `seq` of the first chunk kept.
    pub(super) keeps_from: u64,
    /// The size of the whole history, in bytes: roughly what does not fit.
    pub(super) total: u64,
    /// The user's latest message, if it is not in the kept part.
    pub(super) task: Option<String>,
}

/// Cuts a history, given as the chunks that are sent to a model, so that the newest quarter is kept: whole turns if
/// they fit, otherwise whole steps. The newest message or step is kept whatever its size. `None` = nothing precedes it.
/// `latest`: the user's latest message, which an earlier summary may have replaced.
pub(in crate::session) fn cut(chunks: &[Arc<StoredChunk>], latest: Option<&str>) -> Option<Cut> {
    let total: u64 = chunks.iter().map(|stored| bytes(&stored.chunk)).sum();
    let mut room = total / KEPT_SHARE;
    let fits = chunks.iter().rev().take_while(|stored| {
        let size = bytes(&stored.chunk);
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let first = chunks.len() - fits.count();
    let seams: Vec<usize> = (1..chunks.len()).filter(|at| is_seam(chunks, *at)).collect();
    let turns = seams.iter().copied().filter(|at| chunks[*at].role == Role::User);
    // Whole turns if any fits, then whole steps, then the newest one.
    let at = turns.clone().find(|at| *at >= first);
    let at = at.or_else(|| seams.iter().copied().find(|at| *at >= first)).or(seams.last().copied())?;
    let is_kept = chunks[at..].iter().any(|stored| stored.role == Role::User);
    let task = latest.filter(|_| !is_kept).map(|text| excerpt(text.to_owned(), MAX_TASK));
    let older = &chunks[..at];
    // Summarizing only a summary would not make it shorter.
    older.iter().any(|stored| kept_from(stored).is_none()).then_some(())?;
    Some(Cut { older: older.to_vec(), keeps_from: chunks[at].seq, total, task })
}

/// Whether a turn or a step begins there, so that a cut never separates a call from its result.
fn is_seam(chunks: &[Arc<StoredChunk>], at: usize) -> bool {
    let (before, role) = (chunks[at - 1].role, chunks[at].role);
    match role {
        Role::User => before != Role::User,
        Role::Assistant => before == Role::Tool,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::Chunk;

    use super::*;

    fn said(script: &[(Role, usize)]) -> Vec<Arc<StoredChunk>> {
        let stored = |(seq, (role, size)): (u64, &(Role, usize))| {
            let chunk = match role {
                Role::Tool => {
                    let (tool_call_id, tool_name, content) = ("a".into(), "read".into(), "r".repeat(*size));
                    let (is_error, step_id, images) = (false, None, Vec::new());
                    Chunk::ToolResult {
                        tool_call_id,
                        tool_name,
                        content,
                        is_error,
                        step_id,
                        images,
                        decisions: Vec::new(),
                        questions: Vec::new(),
                    }
                }
                _ => Chunk::Text { text: "t".repeat(*size) },
            };
            Arc::new(StoredChunk { seq, role: *role, chunk: Arc::new(chunk), supersedes: None })
        };
        (1..).zip(script).map(stored).collect()
    }

    fn place(script: &[(Role, usize)]) -> Option<(u64, bool)> {
        cut(&said(script), Some("task")).map(|cut| (cut.keeps_from, cut.task.is_some()))
    }

    #[test]
    fn the_newest_quarter_stays_in_whole_turns() {
        use Role::{Assistant, User};
        let turns = [(User, 10), (Assistant, 90)].repeat(8);
        assert_eq!(place(&turns), Some((13, false)), "two of eight");
        let large = [(User, 10), (Assistant, 90), (User, 500), (Assistant, 10), (User, 10)];
        assert_eq!(place(&large), Some((5, false)), "what was asked last");
    }

    #[test]
    fn a_turn_that_fills_the_context_alone_is_cut_between_its_steps() {
        use Role::{Assistant, Tool, User};
        let mut steps = vec![(User, 20)];
        steps.extend([(Assistant, 10), (Tool, 90)].repeat(8));
        assert_eq!(
            place(&steps),
            Some((14, true)),
            "the last two steps; the task is cut off, and kept in words"
        );
        let one = [(User, 10), (Assistant, 10), (Tool, 10), (Assistant, 10), (Tool, 5_000)];
        assert_eq!(place(&one), Some((4, true)), "the last step stays whatever its size");
    }

    #[test]
    fn one_message_alone_cannot_be_cut() {
        assert_eq!(place(&[(Role::User, 9_000)]), None);
        assert_eq!(place(&[]), None);
    }
}
