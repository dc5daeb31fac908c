//! Where a subscription begins.

pub use everturn_ports::{Cursor, InvalidCursor};

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscribeFrom {
    /// At the start of the running turn; at the end if none runs.
    RunningTurn,
    /// After this cursor. One beyond the end counts as the end.
    After(Cursor),
    /// At the end: only what is published from now on.
    End,
}

impl From<Cursor> for SubscribeFrom {
    fn from(cursor: Cursor) -> Self {
        Self::After(cursor)
    }
}

/// What a request with an optional cursor asks for.
impl From<Option<Cursor>> for SubscribeFrom {
    fn from(cursor: Option<Cursor>) -> Self {
        cursor.map_or(Self::RunningTurn, Self::After)
    }
}
