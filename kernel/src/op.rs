//! The id of one provider call.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The id of one provider call of a turn. Every answer carries it, so that a late answer of an older call changes
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Op {
    /// The step, from 0.
    pub step: u32,
    /// The provider call within the step, from 0. Retries *and* calls repeated after a crash count.
    pub attempt: u32,
}

impl Op {
    /// Returns the next call of the step.
    pub(crate) fn next(self) -> Self {
        Self { attempt: self.attempt.saturating_add(1), ..self }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.step, self.attempt)
    }
}
