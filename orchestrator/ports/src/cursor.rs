//! Cursors: positions in a conversation's event stream.

use std::{fmt, str::FromStr};

/// A position in a conversation's event stream.
///
/// Each event counts as one; streamed text counts one per byte, so that a position inside a text remains valid when
/// many small deltas are later merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor(pub u64);

impl Cursor {
    /// Returns the count, for storage.
    pub fn value(self) -> u64 {
        self.0
    }

    /// Returns the cursor of a stored count.
    pub fn from_value(value: u64) -> Self {
        Self(value)
    }
}

/// A cursor that this server never issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} is not a valid cursor: send back the last one received, or none")]
pub struct InvalidCursor {
    /// The first 64 characters of the invalid cursor.
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
