//! Summaries: which part of a history is summarized, and the request for it.

mod collect;
mod cut;
mod cut_down;
mod prompt;
mod shorten;
mod size;

use std::{panic::AssertUnwindSafe, sync::Arc};

use everturn_kernel::{StreamEvent, Summary};
use everturn_wire::{Category, Chunk, Failure, StoredChunk};
use futures_util::FutureExt as _;

use crate::{CompactionRequest, Compactor, panic::panic_text};

pub(super) use collect::collected;
pub(super) use cut::{Cut, cut};
pub(super) use cut_down::cut_down;
pub(super) use prompt::{request, transcript};
pub(super) use shorten::{shorten, shortened};
pub(super) use size::tokens;

/// Returns the first `seq` that a summary keeps; `None` = the chunk is not a summary.
pub(super) fn kept_from(stored: &StoredChunk) -> Option<u64> {
    match &*stored.chunk {
        Chunk::System { keeps_from, .. } => *keeps_from,
        _ => None,
    }
}

/// Runs a compactor and returns its answer as the event of a summary call.
pub(super) async fn hooked(
    compactor: Arc<dyn Compactor>,
    request: CompactionRequest,
    cut: Cut,
) -> StreamEvent {
    match AssertUnwindSafe(compactor.compact(request)).catch_unwind().await {
        Ok(Ok(text)) => StreamEvent::Summary(Box::new(cut.summary(&text))),
        Ok(Err(failure)) => StreamEvent::Failed(failure),
        Err(panic) => {
            let text = format!("the compactor panicked: {}", panic_text(panic.as_ref()));
            StreamEvent::Failed(Failure::new(Category::Internal, false, text))
        }
    }
}

impl Cut {
    /// Creates the summary of the older part. A task that was cut off is added verbatim.
    fn summary(&self, text: &str) -> Summary {
        let mut text = text.trim().to_owned();
        if let (Some(task), false) = (&self.task, text.is_empty()) {
            text.push_str("\n\nThe user's current request, verbatim:\n");
            text.push_str(task);
        }
        Summary { text, keeps_from: self.keeps_from }
    }
}
