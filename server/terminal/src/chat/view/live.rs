//! Output for a terminal: the answer as it arrives and, redrawn in place below it, the status and the draft.

use std::{
    io::{self, Write},
    mem,
};

use crossterm::{
    cursor::{MoveToColumn, MoveUp},
    queue,
    style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor},
    terminal::{Clear, ClearType},
};
use tokio::time::Instant;

use crate::{visible::Visible, wording};
use unicode_width::UnicodeWidthStr as _;

use super::{
    Line, Status, View, footer,
    markdown::{Markdown, Piece},
    style::Style,
    wrap::{Wrap, rows},
};

/// The prefix of each row of a call's arguments.
const BAR: &str = "  \u{2502} ";

/// Seconds after which a status also shows its duration.
const PATIENCE: u64 = 2;

/// Draws on a terminal, in raw mode or not.
pub(crate) struct Live<W: Write> {
    out: W,
    columns: fn() -> usize,
    /// Whether keys are read, and may be offered.
    has_keys: bool,
    show_reasoning: bool,
    place: Section,
    wrap: Wrap,
    /// `None`: answers are shown without rendering.
    markdown: Option<Markdown>,
    status: Status,
    since: Instant,
    visible: Visible,
    /// The message being typed.
    draft: Option<footer::Draft>,
    /// The footer as currently drawn, and whether it begins on the row below the text.
    drawn: Vec<String>,
    is_below: bool,
}

/// What is above or to the left of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// Nothing of this turn yet.
    Start,
    Line,
    Text,
    Reasoning,
}

impl<W: Write> Live<W> {
    pub(crate) fn new(out: W, columns: fn() -> usize, has_keys: bool, show_reasoning: bool) -> Self {
        Self {
            out,
            columns,
            has_keys,
            show_reasoning,
            place: Section::Start,
            wrap: Wrap::default(),
            markdown: Some(Markdown::default()),
            status: Status::Quiet,
            since: Instant::now(),
            visible: Visible::default(),
            draft: None,
            drawn: Vec::new(),
            is_below: false,
        }
    }

    /// Shows answers without rendering Markdown.
    pub(crate) fn raw(self) -> Self {
        Self { markdown: None, ..self }
    }

    /// Prints text without what could control the terminal or be invisible.
    fn print(&mut self, text: &str) -> io::Result<()> {
        let kept = self.visible.push(text);
        let wrapped = self.wrap.push(&kept, Style::PLAIN, self.width());
        queue!(self.out, Print(wrapped))
    }

    /// Shows the next piece of an answer.
    fn answer(&mut self, text: &str) -> io::Result<()> {
        let (kept, width) = (self.visible.push(text), self.width());
        let pieces = match &mut self.markdown {
            Some(markdown) => markdown.push(&kept, width),
            None => vec![Piece::Text(Style::PLAIN, kept)],
        };
        self.pieces(pieces)
    }

    /// Shows the held part of an answer, before something else is printed.
    fn flush(&mut self) -> io::Result<()> {
        let width = self.width();
        let held = self.markdown.as_mut().map(|markdown| markdown.flush(width));
        self.pieces(held.unwrap_or_default())
    }

    fn pieces(&mut self, pieces: Vec<Piece>) -> io::Result<()> {
        let width = self.width();
        for piece in pieces {
            match piece {
                Piece::Text(style, text) => queue!(self.out, Print(self.wrap.push(&text, style, width)))?,
                Piece::Hang(style, margin) => self.wrap.hang(style, margin),
            }
        }
        Ok(())
    }

    /// Resets the formatting when the answer ends or restarts.
    fn close(&mut self) {
        if let Some(markdown) = &mut self.markdown {
            *markdown = Markdown::default();
        }
    }

    /// The usable width. The last column stays free, as some terminals begin a new row as soon as it is written.
    fn width(&self) -> usize {
        (self.columns)().saturating_sub(1).max(1)
    }

    /// Erases the footer; the cursor is then at the end of the text.
    fn erase(&mut self) -> io::Result<()> {
        for row in (0..mem::take(&mut self.drawn).len()).rev() {
            queue!(self.out, MoveToColumn(0), Clear(ClearType::CurrentLine))?;
            if row > 0 || self.is_below {
                queue!(self.out, MoveUp(1))?;
            }
        }
        if mem::take(&mut self.is_below) {
            queue!(self.out, MoveToColumn(u16::try_from(self.wrap.column()).unwrap_or(u16::MAX)))?;
        }
        Ok(())
    }

    /// Moves to the start of a row.
    fn new_row(&mut self) -> io::Result<()> {
        self.erase()?;
        if self.wrap.is_at_start() { Ok(()) } else { self.print("\n") }
    }

    /// Begins a section, separated from a different one by a blank row.
    fn enter(&mut self, place: Section) -> io::Result<()> {
        self.erase()?;
        let before = mem::replace(&mut self.place, place);
        if before == place || before == Section::Start {
            return Ok(());
        }
        if before == Section::Text {
            self.flush()?;
        }
        self.new_row()?;
        self.print("\n")
    }

    /// Draws the footer if it has changed.
    fn draw(&mut self) -> io::Result<()> {
        let width = self.width();
        let status: String = self.words(Instant::now()).chars().take(width).collect();
        let (draft, column) = self.draft.as_ref().map(|draft| draft.row(width)).unzip();
        let status = Some(status).filter(|status| !status.is_empty());
        let has_status = status.is_some();
        let rows: Vec<String> = status.into_iter().chain(draft).collect();
        if rows == self.drawn {
            return self.place_cursor(column);
        }
        self.erase()?;
        self.is_below = !rows.is_empty() && !self.wrap.is_at_start();
        for (place, row) in rows.iter().enumerate() {
            if place > 0 || self.is_below {
                queue!(self.out, Print("\r\n"))?;
            }
            match (&self.status, place) {
                (
                    Status::Retrying(_)
                    | Status::AskingAgain { .. }
                    | Status::Silent(_)
                    | Status::Approval(_)
                    | Status::Question,
                    0,
                ) if has_status => {
                    queue!(self.out, SetForegroundColor(Color::Yellow))?;
                }
                (_, 0) if has_status => queue!(self.out, SetAttribute(Attribute::Dim))?,
                _ => {}
            }
            queue!(self.out, Print(row), SetAttribute(Attribute::Reset), ResetColor)?;
        }
        self.drawn = rows;
        self.place_cursor(column)
    }

    fn place_cursor(&mut self, column: Option<usize>) -> io::Result<()> {
        if let Some(column) = column {
            queue!(self.out, MoveToColumn(u16::try_from(column).unwrap_or(u16::MAX)))?;
        }
        self.out.flush()
    }

    fn words(&self, now: Instant) -> String {
        let elapsed = now.duration_since(self.since);
        let timed = |what: &str| match elapsed.as_secs() {
            0..PATIENCE => format!("{what}..."),
            _ => format!("{what}... {}", wording::time(elapsed)),
        };
        match &self.status {
            Status::Quiet if self.markdown.as_ref().is_some_and(Markdown::holds_table) => {
                timed("Receiving a table")
            }
            Status::Quiet => String::new(),
            Status::Asking => timed("Waiting for the model"),
            Status::Summarizing => timed("Summarizing earlier messages"),
            Status::Thinking => timed("Thinking"),
            Status::Tool(name) => timed(&format!("Running {name}")),
            Status::Retrying(wait) if self.has_keys && wait.until > now => {
                let keys = if wait.of_caller { "esc to cancel" } else { "esc to cancel, r to retry now" };
                format!("{} ({keys})", wait.words(now))
            }
            Status::Retrying(wait) => wait.words(now),
            Status::AskingAgain { count, of_summary } => {
                let what = if *of_summary { " for the summary" } else { "" };
                let asking = timed(&format!("Asking again{what}{count}"));
                if self.has_keys { format!("{asking} (esc to cancel)") } else { asking }
            }
            Status::Silent(silence) if self.has_keys && silence.may_ask_again => {
                format!("{}; r asks again, esc stops", silence.words(now))
            }
            Status::Silent(silence) => silence.words(now),
            Status::Reviewing(name) => timed(&format!("Reviewing {name}")),
            Status::Approval(asked) if self.has_keys => asked.words(now, self.width(), self.draft.is_some()),
            Status::Approval(_) => timed("Waiting for approval"),
            Status::Question if self.has_keys => "Waiting for your answer (/decline declines)".to_owned(),
            Status::Question => timed("Waiting for an answer"),
            Status::Reconnecting { tried, of } => {
                timed(&format!("Connection lost, reconnecting ({tried}/{of})"))
            }
            // Usually it ends before anybody could read it.
            Status::Stopping if elapsed.as_secs() == 0 => String::new(),
            Status::Stopping => timed("Stopping"),
        }
    }

    fn colored(&mut self, color: Color, mark: &str, text: &str) -> io::Result<()> {
        queue!(self.out, SetForegroundColor(color))?;
        self.print(mark)?;
        self.print(text)?;
        queue!(self.out, ResetColor)
    }

    fn dim(&mut self, text: &str) -> io::Result<()> {
        queue!(self.out, SetAttribute(Attribute::Dim))?;
        self.print(text)?;
        queue!(self.out, SetAttribute(Attribute::Reset))
    }
}

impl<W: Write> View for Live<W> {
    fn begin(&mut self) -> io::Result<()> {
        self.place = Section::Start;
        self.wrap = Wrap::default();
        self.close();
        Ok(())
    }

    fn text(&mut self, delta: &str) -> io::Result<()> {
        if self.status != Status::Quiet {
            (self.status, self.since) = (Status::Quiet, Instant::now());
        }
        self.enter(Section::Text)?;
        self.answer(delta)?;
        self.draw()
    }

    fn reasoning(&mut self, delta: &str) -> io::Result<()> {
        if !self.show_reasoning {
            return self.status(Status::Thinking);
        }
        self.status = Status::Quiet;
        self.enter(Section::Reasoning)?;
        self.dim(delta)?;
        self.draw()
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.enter(Section::Line)?;
        self.new_row()?;
        if !matches!(line, Line::Note(_) | Line::Command { .. } | Line::Warning(_)) {
            self.close();
        }
        match line {
            Line::Failure(text) => self.colored(Color::Yellow, "! ", text)?,
            Line::Error(text) => self.colored(Color::Red, "", text)?,
            Line::Note(text) | Line::Warning(text) | Line::Restart(text) => self.dim(text)?,
            Line::Command { remark, command } => {
                // The terminal itself breaks a long row, which it copies as one.
                self.dim(remark)?;
                let command = Visible::default().push(command);
                let dim = SetAttribute(Attribute::Dim);
                queue!(self.out, dim, Print(format!(" {command}")), SetAttribute(Attribute::Reset))?;
            }
            Line::Approval { title, details } => {
                self.colored(Color::Yellow, "? ", title)?;
                // Wrapped here, so that no row of an argument begins where our own lines do.
                let width = self.width().saturating_sub(BAR.width()).max(1);
                for row in details.iter().flat_map(|line| rows(line, width)) {
                    self.print("\n")?;
                    self.colored(Color::Yellow, BAR, "")?;
                    self.print(&row)?;
                }
            }
            Line::Tool { call, result, is_error } => {
                let color = if *is_error { Color::Red } else { Color::Green };
                self.colored(color, "\u{25cf} ", "")?;
                self.dim(&format!("{call} \u{2192} {result}"))?;
            }
        }
        self.print("\n")?;
        self.draw()
    }

    fn status(&mut self, status: Status) -> io::Result<()> {
        if status != self.status {
            self.since = Instant::now();
            self.status = status;
        }
        self.draw()
    }

    fn draft(&mut self, text: &str, cursor: usize) -> io::Result<()> {
        self.draft = (!text.is_empty()).then(|| footer::Draft::new(text, cursor));
        self.draw()
    }

    fn refresh(&mut self) -> io::Result<()> {
        self.draw()
    }

    fn end(&mut self) -> io::Result<()> {
        self.status = Status::Quiet;
        self.erase()?;
        self.flush()?;
        self.close();
        self.new_row()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
