//! The draft that a person types while an answer arrives, on one row.

use crate::visible::visible;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const SIGN: &str = "> ";

/// A message being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draft {
    before: String,
    after: String,
}

impl Draft {
    /// A draft with the cursor at byte offset `cursor`.
    pub(super) fn new(text: &str, cursor: usize) -> Self {
        let one_row = |text: &str| visible(&text.replace('\n', "\u{21b5}").replace('\t', " "));
        let (before, after) = text.split_at_checked(cursor).unwrap_or((text, ""));
        Self { before: one_row(before), after: one_row(after) }
    }

    /// The part of the draft that fits on a row of `width` cells, and the cursor's cell on it. The text before the
    /// cursor takes precedence.
    pub(super) fn row(&self, width: usize) -> (String, usize) {
        let room = width.saturating_sub(SIGN.width() + 1);
        let mut left = room;
        let fits = |c: &char| {
            let cells = c.width().unwrap_or(0);
            let fits = cells <= left;
            left = if fits { left - cells } else { 0 };
            fits
        };
        let before: Vec<char> = self.before.chars().rev().take_while(fits).collect();
        let row: String = SIGN.chars().chain(before.into_iter().rev()).collect();
        let column = row.width();
        let mut left = width.saturating_sub(column);
        let after = self.after.chars().take_while(|c| {
            let cells = c.width().unwrap_or(0);
            let fits = cells <= left;
            left = if fits { left - cells } else { 0 };
            fits
        });
        (row.chars().chain(after).collect(), column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_the_cursor_is_shown() {
        for (text, cursor, expected) in [
            ("hello", 5, ("> hello", 7)),
            ("hello", 2, ("> hello", 4)),
            ("hello out there", 15, ("> t there", 9)),
            ("hello out there", 0, ("> hello ou", 2)),
            ("one\ntwo", 7, ("> one\u{21b5}two", 9)),
            ("日本語日本", 15, ("> 語日本", 8)),
            ("a\u{1b}[2J", 5, ("> a[2J", 6)),
        ] {
            let (row, column) = Draft::new(text, cursor).row(10);
            assert_eq!((row.as_str(), column), expected, "{text}");
        }
    }
}
