//! The printer: writes a command's output to a terminal or elsewhere.

use std::{
    borrow::Cow,
    env,
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    process::ExitCode,
};

use anyhow::Result;
use crossterm::{
    queue,
    style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor},
    terminal,
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::visible::visible;

/// The style of a piece of text, if the output has styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The terminal's default.
    Plain,
    /// Bold.
    Strong,
    /// Less important.
    Faint,
    /// Success.
    Good,
    /// A warning.
    Warning,
    /// A failure.
    Bad,
}

/// Prints text. Removes control sequences, so that text of providers and tools cannot control the terminal.
pub struct Printer<W: Write> {
    out: W,
    /// Cells per row; `None` if rows are not limited.
    columns: Option<usize>,
    has_ink: bool,
}

impl Printer<BufWriter<Stdout>> {
    /// Creates a printer to standard output, with colours if it is a terminal.
    pub fn of_stdout() -> Self {
        let stdout = io::stdout();
        let columns = stdout.is_terminal().then(|| columns().max(20));
        let has_ink = has_ink(&stdout);
        Self { out: BufWriter::new(stdout), columns, has_ink }
    }
}

/// Whether an output shows styles: it is a terminal that knows them, and nobody asked for none with `NO_COLOR`.
pub fn has_ink(out: &impl IsTerminal) -> bool {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    let has_none = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    out.is_terminal() && !is_dumb && !has_none
}

/// Returns the terminal's cells per row; 80 if unknown.
pub fn columns() -> usize {
    let known = terminal::size().ok().filter(|(columns, _)| *columns > 0);
    known.map_or(80, |(columns, _)| columns.into())
}

impl<W: Write> Printer<W> {
    /// Creates a printer without styles. `columns`: cells per row, if limited.
    pub fn plain(out: W, columns: Option<usize>) -> Self {
        Self { out, columns, has_ink: false }
    }

    /// Returns the cells per row, if limited.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Writes a piece of text.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written, as do all methods that write.
    pub fn write(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        let text = visible(text);
        if !self.has_ink || ink == Ink::Plain {
            return self.out.write_all(text.as_bytes());
        }
        match ink {
            Ink::Plain => {}
            Ink::Strong => queue!(self.out, SetAttribute(Attribute::Bold))?,
            Ink::Faint => queue!(self.out, SetAttribute(Attribute::Dim))?,
            Ink::Good => queue!(self.out, SetForegroundColor(Color::Green))?,
            Ink::Warning => queue!(self.out, SetForegroundColor(Color::Yellow))?,
            Ink::Bad => queue!(self.out, SetForegroundColor(Color::Red))?,
        }
        queue!(self.out, Print(text), SetAttribute(Attribute::Reset), ResetColor)
    }

    /// Writes a line.
    pub fn line(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        self.write(ink, text)?;
        self.out.write_all(b"\n")
    }

    /// Writes text whose rows all begin with `margin`, wrapped at words if the output has a width.
    pub fn block(&mut self, ink: Ink, margin: &str, text: &str) -> io::Result<()> {
        for row in self.rows(margin, text) {
            self.line(ink, &format!("{margin}{row}"))?;
        }
        Ok(())
    }

    /// Returns the rows of a text, wrapped to leave room for `margin`.
    pub fn rows(&self, margin: &str, text: &str) -> Vec<String> {
        // The width of a tab would depend on its position.
        let text = text.replace('\t', "    ");
        let width = self.columns.map(|columns| columns.saturating_sub(margin.width()).max(1));
        let broken = |line: &str| match width {
            Some(width) => textwrap::wrap(line, width).into_iter().map(Cow::into_owned).collect(),
            None => vec![line.to_owned()],
        };
        text.lines().flat_map(broken).collect()
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Treats a closed output as success, because the reader has seen enough.
pub fn unless_closed(written: Result<ExitCode>) -> Result<ExitCode> {
    let is_closed = |error: &anyhow::Error| {
        let of_pipe = error.downcast_ref::<io::Error>();
        of_pipe.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    match written {
        Err(error) if is_closed(&error) => Ok(ExitCode::SUCCESS),
        written => written,
    }
}

/// Truncates text to this many cells, with an ellipsis.
pub fn cut(text: &str, cells: usize) -> String {
    if text.width() <= cells {
        return text.to_owned();
    }
    let mut left = cells.saturating_sub(1);
    let fits = |c: &char| {
        let cells = c.width().unwrap_or(0);
        let fits = cells <= left;
        left = left.saturating_sub(cells);
        fits
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('\u{2026}');
    cut
}

/// Pads text with spaces to this many cells.
pub fn pad(text: &str, cells: usize) -> String {
    let missing = cells.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_counted_not_characters() {
        for (text, cells, expected) in [
            ("hello", 5, "hello"),
            ("hello", 4, "hel\u{2026}"),
            ("日本語", 5, "日本\u{2026}"),
            ("日本語", 4, "日\u{2026}"),
        ] {
            assert_eq!(cut(text, cells), expected);
            assert_eq!(pad(&cut(text, cells), 8).width(), 8);
        }
    }

    #[test]
    fn rows_break_between_words_and_contain_no_control_characters() {
        let mut out = Vec::new();
        let mut printer = Printer::plain(&mut out, Some(12));
        printer.block(Ink::Plain, "  ", "one two three\n\n日本語日本語\u{1b}[2J").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "  one two\n  three\n  \n  日本語日本\n  語[2J\n");
    }
}
