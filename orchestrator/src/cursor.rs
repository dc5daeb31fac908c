//! Cursors: places in a conversation's event stream.

use std::{fmt, str::FromStr};

/// A place between two events of a conversation.
///
/// It counts one for each event and, for streamed text, one for each byte of it: so a place inside a text stays what
/// it is when many small deltas are later kept as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor(pub(crate) u64);

impl Cursor {
    /// The count, for storing it.
    pub fn value(self) -> u64 {
        self.0
    }

    /// The cursor of a stored count.
    pub fn from_value(value: u64) -> Self {
        Self(value)
    }
}

/// A cursor that this server never gave out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} is not a valid cursor: send back the last one received, or none")]
pub struct InvalidCursor {
    /// What was sent, its first 64 characters.
    pub shown: String,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let count = digits.and_then(|digits| digits.parse().ok());
        count.map(Self).ok_or_else(|| InvalidCursor { shown: text.chars().take(64).collect() })
    }
}
