//! Tables, shown when they are complete because columns are as wide as their widest cell.

use std::mem;

use unicode_width::UnicodeWidthStr as _;

use super::{
    Piece,
    inline::{self, Spans},
};
use crate::chat::view::style::Style;

/// Maximum size of a table in bytes; longer ones are shown unformatted.
const LONGEST: usize = 32 << 10;

const GAP: &str = "  ";

/// The rows so far.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<String>,
    bytes: usize,
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row. Returns true if the table is full.
    pub(super) fn push(&mut self, row: &str) -> bool {
        self.bytes += row.len();
        self.rows.push(row.trim().to_owned());
        self.bytes > LONGEST
    }

    /// Outputs the table and clears it.
    pub(super) fn end(&mut self, width: usize, out: &mut Vec<Piece>) {
        self.bytes = 0;
        let rows = mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        if let Some(pieces) = rendered(&rows, width) {
            out.extend(pieces);
            return;
        }
        for row in rows {
            out.extend(
                inline::spans(&row, Style::PLAIN).into_iter().map(|(style, text)| Piece::Text(style, text)),
            );
            out.push(Piece::Text(Style::PLAIN, "\n".to_owned()));
        }
    }
}

/// The formatted table, if it is valid and fits.
fn rendered(rows: &[String], width: usize) -> Option<Vec<Piece>> {
    let [head, rule, body @ ..] = rows else { return None };
    let is_rule = |cell: &str| cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':'));
    if !cells(rule).iter().all(|cell| is_rule(cell)) {
        return None;
    }
    let to_the_right: Vec<bool> =
        cells(rule).iter().map(|cell| cell.ends_with(':') && !cell.starts_with(':')).collect();
    let spans = |row: &String, style| -> Vec<Spans> {
        cells(row).iter().map(|cell| inline::spans(cell, style)).collect()
    };
    let rows: Vec<Vec<Spans>> = [spans(head, Style::BOLD)]
        .into_iter()
        .chain(body.iter().map(|row| spans(row, Style::PLAIN)))
        .collect();
    let columns = rows.iter().map(Vec::len).max()?;
    let cell_width = |spans: &Spans| spans.iter().map(|(_, text)| text.width()).sum::<usize>();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(cell_width).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    if widths.iter().sum::<usize>() + GAP.len() * (columns - 1) > width {
        return None;
    }
    let mut out = Vec::new();
    let text = |text: String| Piece::Text(Style::PLAIN, text);
    for (number, row) in rows.into_iter().enumerate() {
        let mut cells = row.into_iter();
        for (column, width) in widths.iter().enumerate() {
            let cell = cells.next().unwrap_or_default();
            let missing = " ".repeat(width.saturating_sub(cell_width(&cell)));
            let is_last = column + 1 == columns;
            let is_right = to_the_right.get(column) == Some(&true);
            let (before, after) = if is_right { (missing, String::new()) } else { (String::new(), missing) };
            out.push(text(before));
            out.extend(cell.into_iter().map(|(style, text)| Piece::Text(style, text)));
            if !is_last {
                out.push(text(after + GAP));
            }
        }
        out.push(text("\n".to_owned()));
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "\u{2500}".repeat(*width)).collect();
            out.push(Piece::Text(Style::DIM, rules.join(GAP)));
            out.push(text("\n".to_owned()));
        }
    }
    Some(out)
}

/// The cells of a row; an escaped bar is part of the text.
fn cells(row: &str) -> Vec<String> {
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut all = vec![String::new()];
    let mut is_escaped = false;
    for c in row.chars() {
        match (c, all.last_mut()) {
            ('|', Some(cell)) if is_escaped => {
                cell.pop();
                cell.push(c);
            }
            ('|', _) => all.push(String::new()),
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    // Rows usually end with a bar.
    if all.len() > 1 && all.last().is_some_and(|last| last.trim().is_empty()) {
        all.pop();
    }
    all.iter().map(|cell| cell.trim().to_owned()).collect()
}
