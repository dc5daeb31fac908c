//! Renders Markdown as it arrives; what was shown is never taken back.
//!
//! Text is held while its meaning is unclear: the start of a line until its kind is known, `**` until its end arrives,
//! a table until it ends. What turns out not to be Markdown is shown unchanged.

mod inline;
mod line;
mod table;

use std::mem;

use super::style::Style;
use inline::Inline;
use line::{Fence, Kind};
use table::Table;

/// Maximum width of a horizontal rule, in cells.
const RULE: usize = 40;

/// A piece of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Style, String),
    /// Sets the margin of the continuation rows of this line.
    Hang(Style, String),
}

/// Renders one answer.
#[derive(Default)]
pub(super) struct Markdown {
    fence: Option<Fence>,
    table: Table,
    line: Line,
}

/// The current line.
enum Line {
    /// Its kind is not clear yet.
    Start(String),
    /// A number, perhaps of a list item; shown as it arrives.
    Number(String),
    Text(Inline),
    /// In a code block.
    Code,
    /// A table row; shown when the table ends.
    Row,
}

impl Default for Line {
    fn default() -> Self {
        Self::Start(String::new())
    }
}

impl Markdown {
    /// What to show for the next piece of text, on rows of `width` cells.
    pub(super) fn push(&mut self, text: &str, width: usize) -> Vec<Piece> {
        let mut out = Vec::new();
        text.chars().for_each(|c| self.letter(c, width, &mut out));
        joined(out)
    }

    /// Returns the held text, because something else is printed; the text may continue afterwards.
    pub(super) fn flush(&mut self, width: usize) -> Vec<Piece> {
        let mut out = Vec::new();
        match mem::take(&mut self.line) {
            Line::Start(held) if held.is_empty() => {}
            Line::Start(held) => self.begin(held, true, width, &mut out),
            Line::Text(mut inline) => inline.end(&mut out),
            Line::Number(_) | Line::Code | Line::Row => {}
        }
        self.line = Line::default();
        self.table.end(width, &mut out);
        joined(out)
    }

    /// Whether a table is being held.
    pub(super) fn holds_table(&self) -> bool {
        !self.table.is_empty()
    }

    fn letter(&mut self, c: char, width: usize, out: &mut Vec<Piece>) {
        match &mut self.line {
            Line::Start(held) => {
                let is_complete = c == '\n';
                if !is_complete {
                    held.push(c);
                }
                let held = mem::take(held);
                self.begin(held, is_complete, width, out);
            }
            Line::Number(_) | Line::Code | Line::Row if c == '\n' => {}
            Line::Number(shown) => {
                let shown = mem::take(shown);
                self.after_number(shown, c, out);
            }
            Line::Text(inline) if c == '\n' => inline.end(out),
            Line::Text(inline) => inline.push(c, out),
            Line::Code | Line::Row => out.push(Piece::Text(Style::CODE, c.to_string())),
        }
        if c == '\n' && !matches!(mem::take(&mut self.line), Line::Row) {
            out.push(Piece::Text(Style::PLAIN, "\n".to_owned()));
        }
    }

    /// Handles what follows a number at the start of a line: a dot or bracket and a space make it a list item.
    fn after_number(&mut self, mut shown: String, c: char, out: &mut Vec<Piece>) {
        let is_ended = shown.ends_with(['.', ')']);
        if (c.is_ascii_digit() || matches!(c, '.' | ')')) && !is_ended {
            shown.push(c);
            out.push(Piece::Text(Style::PLAIN, c.to_string()));
            self.line = Line::Number(shown);
            return;
        }
        let mut inline = Inline::new(Style::PLAIN, shown.chars().next_back());
        inline.push(c, out);
        if is_ended && c == ' ' {
            out.push(Piece::Hang(Style::PLAIN, " ".repeat(shown.len() + 1)));
        }
        self.line = Line::Text(inline);
    }

    /// Begins a line if its kind is clear, which it always is for a complete line.
    fn begin(&mut self, held: String, is_complete: bool, width: usize, out: &mut Vec<Piece>) {
        if let Some(fence) = &self.fence {
            self.line = match fence.is_closed_by(&held, is_complete) {
                None => Line::Start(held),
                Some(true) => {
                    self.fence = None;
                    out.push(Piece::Text(Style::DIM, held));
                    Line::Code
                }
                Some(false) => {
                    out.push(Piece::Text(Style::CODE, held));
                    Line::Code
                }
            };
            return;
        }
        if !line::may_be_row(&held, is_complete) {
            self.table.end(width, out);
        }
        let Some((kind, rest)) = line::kind(&held, is_complete) else {
            self.line = Line::Start(held);
            return;
        };
        if kind != Kind::Row {
            self.table.end(width, out);
        }
        let mut style = Style::PLAIN;
        match kind {
            Kind::Text => {}
            Kind::Number => {
                out.push(Piece::Text(Style::PLAIN, held.clone()));
                self.line = Line::Number(held);
                return;
            }
            Kind::Heading(level) => style = Style { underline: level == 1, ..Style::BOLD },
            Kind::Item { start, marker } => {
                let margin = " ".repeat(start.len() + marker.chars().count());
                out.push(Piece::Text(Style::PLAIN, format!("{start}{marker}")));
                out.push(Piece::Hang(Style::PLAIN, margin));
            }
            Kind::Quote => {
                let bar = || "\u{2502} ".to_owned();
                out.extend([Piece::Text(Style::DIM, bar()), Piece::Hang(Style::DIM, bar())]);
            }
            Kind::Rule => out.push(Piece::Text(Style::DIM, "\u{2500}".repeat(width.min(RULE)))),
            Kind::Fence(fence) => {
                self.fence = Some(fence);
                out.push(Piece::Text(Style::DIM, held.clone()));
            }
            Kind::Row => {
                let is_full = self.table.push(&held);
                if is_full {
                    self.table.end(width, out);
                }
                self.line = Line::Row;
                return;
            }
        }
        let mut inline = Inline::new(style, None);
        rest.chars().for_each(|c| inline.push(c, out));
        if is_complete {
            inline.end(out);
        }
        self.line = Line::Text(inline);
    }
}

/// Merges neighbouring pieces of the same style.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (all.last_mut(), piece) {
            (Some(Piece::Text(style, text)), Piece::Text(same, more)) if *style == same => {
                text.push_str(&more);
            }
            (_, Piece::Text(_, text)) if text.is_empty() => {}
            (_, piece) => all.push(piece),
        }
    }
    all
}

#[cfg(test)]
mod tests;
