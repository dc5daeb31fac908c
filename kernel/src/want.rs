//! Wants: what a turn waits for.

use crate::{Millis, Op};

/// What a turn wants done. A level, not an edge: derived from the state, the same however often it is asked.
///
/// Whatever runs and is no longer wanted is to be stopped: that is how cancelling works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The answer of this provider call; eager tools too (see [`crate::Turn::running_calls`]).
    Stream(Op),
    /// To be woken, for this provider call, at this moment.
    Wake(Op, Millis),
    /// The results of [`crate::Turn::running_calls`].
    Tools {
        /// The step that asked for them.
        step: u32,
    },
    /// Nothing any more: the turn is sealed.
    Nothing,
}
