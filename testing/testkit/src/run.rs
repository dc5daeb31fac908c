//! How a process ended.

use everturn_kernel::{Turn, Want};

/// How a process ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Run {
    /// The turn is sealed.
    Sealed(Turn),
    /// The host left the turn in its saved state, with this want.
    Left(Turn, Want),
    /// The process ended at the crash point.
    Crashed,
    /// All tasks wait, and nothing will wake them.
    Stuck,
}

impl Run {
    /// Returns the turn if it is sealed.
    pub fn sealed(self) -> Option<Turn> {
        if let Self::Sealed(turn) = self { Some(turn) } else { None }
    }

    /// Returns the turn if it is sealed or was left.
    pub fn turn(self) -> Option<Turn> {
        match self {
            Self::Sealed(turn) | Self::Left(turn, _) => Some(turn),
            Self::Crashed | Self::Stuck => None,
        }
    }
}
