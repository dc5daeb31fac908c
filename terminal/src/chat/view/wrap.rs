//! Breaking lines between words, while the words are still coming.

use std::mem;

use unicode_width::UnicodeWidthChar as _;

/// Where the text is on its row. A word that turns out too long for the rest of the row is taken back and said again on
/// the next one.
#[derive(Default)]
pub(super) struct Wrap {
    /// Cells of the row that are taken.
    column: usize,
    /// What may have to be taken back: the text since the last space.
    word: String,
    word_width: usize,
}

impl Wrap {
    /// Whether nothing is on the row yet.
    pub(super) fn is_at_start(&self) -> bool {
        self.column == 0
    }

    /// The cell of the row that comes next.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// What to print for the next piece of text, on rows of `width` cells. The last column of the terminal must stay
    /// free: a cursor there cannot be moved back by counting.
    pub(super) fn push(&mut self, text: &str, width: usize) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => self.break_row(&mut out),
                ' ' if self.column >= width => self.break_row(&mut out),
                ' ' | '\t' => {
                    out.push(c);
                    self.column += if c == ' ' { 1 } else { 8 - self.column % 8 };
                    self.end_word();
                }
                c => self.letter(c, width, &mut out),
            }
        }
        out
    }

    fn letter(&mut self, c: char, width: usize, out: &mut String) {
        let cells = c.width().unwrap_or(0);
        if self.column + cells > width {
            let is_moved = (1..self.column).contains(&self.word_width) && self.word_width + cells <= width;
            let moved = if is_moved { mem::take(self) } else { Self::default() };
            if is_moved {
                // Back to where the word began, and away with it.
                out.push_str(&format!("\u{1b}[{}D\u{1b}[K", moved.word_width));
            }
            self.break_row(out);
            out.push_str(&moved.word);
            *self = Self { column: moved.word_width, ..moved };
        }
        out.push(c);
        self.word.push(c);
        self.word_width += cells;
        self.column += cells;
    }

    fn break_row(&mut self, out: &mut String) {
        out.push_str("\r\n");
        *self = Self::default();
    }

    fn end_word(&mut self) {
        self.word.clear();
        self.word_width = 0;
    }
}

/// A line cut into rows of at most `width` cells.
pub(super) fn rows(line: &str, width: usize) -> Vec<String> {
    let (mut rows, mut taken) = (vec![String::new()], 0);
    for c in line.replace('\t', "    ").chars() {
        let cells = c.width().unwrap_or(0);
        if taken + cells > width {
            rows.push(String::new());
            taken = 0;
        }
        taken += cells;
        if let Some(row) = rows.last_mut() {
            row.push(c);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal of 11 columns shows of text that comes letter by letter.
    fn shown(text: &str) -> Vec<String> {
        let (mut wrap, mut screen) = (Wrap::default(), vt100::Parser::new(8, 11, 0));
        for c in text.chars() {
            screen.process(wrap.push(c.encode_utf8(&mut [0; 4]), 10).as_bytes());
        }
        let rows = screen.screen().rows(0, 11).map(|row| row.trim_end().to_owned());
        let mut rows: Vec<String> = rows.collect();
        rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        rows
    }

    #[test]
    fn words_stay_whole() {
        for (text, expected) in [
            ("one two three four", &["one two", "three four"][..]),
            ("1234567890 next", &["1234567890", "next"]),
            ("12345 67890", &["12345", "67890"]),
            ("a 123456789012345", &["a", "1234567890", "12345"]),
            ("one\n  two\n\nthree", &["one", "  two", "", "three"]),
            ("日本 日本語", &["日本", "日本語"]),
            ("ab日本語日本語", &["ab日本語日", "本語"]),
            ("a\tbcdef", &["a", "bcdef"]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
