//! Compaction: a summary takes the place of the older part of a history that does not fit the model's context.

use alloc::{string::String, vec::Vec};

use everturn_wire::CompactionCause;

/// A summary of the older part of a history. Told by hosts, as the whole answer of a call for which
/// [`crate::Turn::is_summarizing`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// The `seq` of the first chunk that the model still receives as it is.
    pub keeps_from: u64,
}

/// A step whose history is being summarized, and what it goes back to afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summarizing {
    pub(crate) cause: CompactionCause,
    /// The target that the step asks, as an index into the turn's own targets, and whether a person chose it.
    pub(crate) target: usize,
    pub(crate) is_chosen: bool,
    /// The targets that are out for the step.
    pub(crate) out: Vec<usize>,
}

/// What a step may still have summarized: at most one summary ahead of an overflow, and one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Compacted {
    #[default]
    No,
    /// A summary was made or tried before the call.
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
