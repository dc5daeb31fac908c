//! How one process came to its end.

use everturn_kernel::{Turn, Want};

/// How one process came to its end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Run {
    /// The turn is sealed.
    Sealed(Turn),
    /// The host left the turn, as it was saved, while it wanted this.
    Left(Turn, Want),
    /// The process ended at the crash point.
    Crashed,
    /// All wait, and nothing will ever come.
    Stuck,
}

impl Run {
    /// The sealed turn.
    pub fn sealed(self) -> Option<Turn> {
        if let Self::Sealed(turn) = self { Some(turn) } else { None }
    }

    /// The turn, where the process ended in good order: it is sealed, or was left.
    pub fn turn(self) -> Option<Turn> {
        match self {
            Self::Sealed(turn) | Self::Left(turn, _) => Some(turn),
            Self::Crashed | Self::Stuck => None,
        }
    }
}
