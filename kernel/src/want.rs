//! Wants: what a turn needs next.

use crate::{Millis, Op};

/// What a turn needs next. A level, not an edge: derived from the state and the same however often it is read.
///
/// Running work that is no longer wanted must be stopped: that is how cancelling works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The answer of this provider call, and of eager tools (see [`crate::Turn::running_calls`]).
    Stream(Op),
    /// A wake-up for this provider call at this moment.
    Wake(Op, Millis),
    /// The results of [`crate::Turn::running_calls`] and [`crate::Turn::running_reviews`], and the answers of people.
    Tools {
        /// The step that made the calls.
        step: u32,
        /// When the turn needs an [`Input::Due`](crate::Input::Due) at the latest; `None` = never.
        until: Option<Millis>,
    },
    /// Only the answers of people to requests for approval.
    Person {
        /// The step that made the calls.
        step: u32,
        /// When the turn needs an [`Input::Due`](crate::Input::Due) at the latest; `None` = never.
        until: Option<Millis>,
    },
    /// Nothing: the turn is sealed.
    Nothing,
}
