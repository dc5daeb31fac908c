//! Compaction: replacing the older part of a history with a summary when the history does not fit the model's context.

use alloc::{string::String, vec::Vec};

use everturn_wire::CompactionCause;

/// A summary of the older part of a history. Hosts send it as the whole answer of a call while
/// [`crate::Turn::is_summarizing`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// The `seq` of the first chunk that the model still receives unchanged.
    pub keeps_from: u64,
}

/// A step whose history is being summarized, and the state to return to afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summarizing {
    pub(crate) cause: CompactionCause,
    /// The target that the step asked before, as an index into the turn's own targets, and whether a person chose it.
    pub(crate) target: usize,
    pub(crate) is_chosen: bool,
    /// Targets that the step no longer asks, as indexes.
    pub(crate) out: Vec<usize>,
}

/// Which summaries a step has already used: it may make one before an overflow and one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Compacted {
    #[default]
    No,
    /// A summary was attempted before the call.
    Ahead,
    /// A summary was made after an overflow.
    Overflow,
}

impl Compacted {
    pub(crate) fn by(cause: CompactionCause) -> Self {
        match cause {
            CompactionCause::Ahead => Self::Ahead,
            _ => Self::Overflow,
        }
    }
}
