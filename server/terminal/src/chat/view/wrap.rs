//! Word wrapping of text that is still arriving.

use std::mem;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::style::Style;

/// Tracks the position in the current row. A word that turns out to be too long for the rest of the row is erased and
/// written again on the next row.
#[derive(Default)]
pub(super) struct Wrap {
    /// Cells used in the row.
    column: usize,
    /// Margin of the continuation rows of this line.
    margin: (Style, String),
    /// Cells of the row used by the margin.
    margin_width: usize,
    /// The text since the last space, which may have to be erased.
    word: Vec<(Style, char)>,
    word_width: usize,
}

impl Wrap {
    /// Whether the row is empty.
    pub(super) fn is_at_start(&self) -> bool {
        self.column == 0
    }

    /// The next cell of the row.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// Sets the margin of the continuation rows of this line.
    pub(super) fn hang(&mut self, style: Style, margin: String) {
        self.margin = (style, margin);
    }

    /// Returns what to print for the next piece of text, on rows of `width` cells. The last column of the terminal must
    /// stay free, because a cursor there cannot be moved back reliably. The terminal's style is plain before and after.
    pub(super) fn push(&mut self, text: &str, style: Style, width: usize) -> String {
        let mut out = Ink { text: String::with_capacity(text.len()), style: Style::PLAIN };
        for c in text.chars() {
            match c {
                '\n' => {
                    out.text.push_str("\r\n");
                    *self = Self::default();
                }
                ' ' if self.column >= width => self.next_row(width, &mut out),
                ' ' | '\t' => {
                    out.push(style, c);
                    self.column += if c == ' ' { 1 } else { 8 - self.column % 8 };
                    self.end_word();
                }
                c => self.letter(style, c, width, &mut out),
            }
        }
        out.end()
    }

    fn letter(&mut self, style: Style, c: char, width: usize, out: &mut Ink) {
        let cells = c.width().unwrap_or(0);
        if self.column + cells > width {
            let before = self.column - self.margin_width;
            let is_moved = (1..before).contains(&self.word_width) && self.word_width + cells <= width;
            let word = if is_moved { mem::take(&mut self.word) } else { Vec::new() };
            let word_width = if is_moved { self.word_width } else { 0 };
            if is_moved {
                // Moves back to the start of the word and erases it.
                out.text.push_str(&format!("\u{1b}[{word_width}D\u{1b}[K"));
            }
            self.next_row(width, out);
            word.iter().for_each(|(style, c)| out.push(*style, *c));
            self.column += word_width;
            (self.word, self.word_width) = (word, word_width);
        }
        out.push(style, c);
        self.word.push((style, c));
        self.word_width += cells;
        self.column += cells;
    }

    /// Continues the line on the next row.
    fn next_row(&mut self, width: usize, out: &mut Ink) {
        out.text.push_str("\r\n");
        let (style, margin) = &self.margin;
        // No margin if hardly any space would be left.
        let margin = if margin.width() * 2 <= width { margin.as_str() } else { "" };
        margin.chars().for_each(|c| out.push(*style, c));
        self.margin_width = margin.width();
        self.column = self.margin_width;
        self.end_word();
    }

    fn end_word(&mut self) {
        self.word.clear();
        self.word_width = 0;
    }
}

/// Text with the escape sequences for its styles.
struct Ink {
    text: String,
    style: Style,
}

impl Ink {
    fn push(&mut self, style: Style, c: char) {
        if mem::replace(&mut self.style, style) != style {
            self.text.push_str(&style.escape());
        }
        self.text.push(c);
    }

    fn end(mut self) -> String {
        if self.style != Style::PLAIN {
            self.text.push_str(&Style::PLAIN.escape());
        }
        self.text
    }
}

/// Splits a line into rows of at most `width` cells.
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

    /// The screen of a terminal with 11 columns, for text that arrives letter by letter.
    fn shown(text: &str) -> Vec<String> {
        let (mut wrap, mut screen) = (Wrap::default(), vt100::Parser::new(8, 11, 0));
        for c in text.chars() {
            screen.process(wrap.push(c.encode_utf8(&mut [0; 4]), Style::PLAIN, 10).as_bytes());
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

    #[test]
    fn further_rows_of_a_line_hang_and_a_word_keeps_its_styles() {
        let (mut wrap, mut screen) = (Wrap::default(), vt100::Parser::new(8, 11, 0));
        let mut print = |text: &str, style| screen.process(wrap.push(text, style, 10).as_bytes());
        print("- ", Style::PLAIN);
        wrap.hang(Style::DIM, "| ".to_owned());
        let mut print = |text: &str, style| screen.process(wrap.push(text, style, 10).as_bytes());
        for (text, style) in [("one two th", Style::PLAIN), ("ree", Style::BOLD), (" four\n", Style::PLAIN)] {
            print(text, style);
        }
        print("next line", Style::PLAIN);
        let rows: Vec<String> =
            screen.screen().rows(0, 11).take(4).map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(rows, ["- one two", "| three", "| four", "next line"]);
        let cell = |row, column| screen.screen().cell(row, column).unwrap();
        assert!(cell(1, 0).dim() && !cell(1, 2).dim() && !cell(1, 3).bold() && cell(1, 4).bold());
        assert!(!cell(2, 2).bold() && !cell(3, 0).bold());
    }
}
