//! For a terminal: the answer as it comes, and below it one line that says what is going on, redrawn in place.

use std::{
    io::{self, Write},
    mem,
};

use crossterm::{
    cursor::MoveToColumn,
    queue,
    style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor},
    terminal::{self, Clear, ClearType},
};
use tokio::time::Instant;

use super::{Line, Status, View, wrap::Wrap};
use crate::wording;

/// After so many seconds a line says how long it has been there.
const PATIENCE: u64 = 2;

/// Draws on a terminal, whether or not it is in raw mode.
pub(crate) struct Live<W: Write> {
    out: W,
    columns: fn() -> usize,
    /// Whether keys are listened to, and may be offered.
    has_keys: bool,
    show_reasoning: bool,
    place: Place,
    wrap: Wrap,
    status: Status,
    since: Instant,
    /// The status line as it stands there now.
    drawn: String,
}

/// What stands above the cursor, or left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing of this turn.
    Start,
    Line,
    Text,
    Reasoning,
}

/// The terminal's width.
pub(crate) fn columns() -> usize {
    terminal::size().map_or(80, |(columns, _)| columns.into())
}

impl<W: Write> Live<W> {
    pub(crate) fn new(out: W, columns: fn() -> usize, has_keys: bool, show_reasoning: bool) -> Self {
        Self {
            out,
            columns,
            has_keys,
            show_reasoning,
            place: Place::Start,
            wrap: Wrap::default(),
            status: Status::Quiet,
            since: Instant::now(),
            drawn: String::new(),
        }
    }

    /// Text as it is, but for what could steer the terminal.
    fn print(&mut self, text: &str) -> io::Result<()> {
        let kept = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
        let wrapped = self.wrap.push(&kept.collect::<String>(), self.width());
        queue!(self.out, Print(wrapped))
    }

    /// The last column stays free: some terminals begin a new row as soon as it is written.
    fn width(&self) -> usize {
        (self.columns)().saturating_sub(1).max(1)
    }

    fn erase(&mut self) -> io::Result<()> {
        match mem::take(&mut self.drawn).is_empty() {
            true => Ok(()),
            false => queue!(self.out, MoveToColumn(0), Clear(ClearType::CurrentLine)),
        }
    }

    /// Goes to the start of a row.
    fn new_row(&mut self) -> io::Result<()> {
        self.erase()?;
        if self.wrap.is_at_start() { Ok(()) } else { self.print("\n") }
    }

    /// Goes where something of another kind begins: a blank row apart from what was there before.
    fn enter(&mut self, place: Place) -> io::Result<()> {
        self.erase()?;
        let before = mem::replace(&mut self.place, place);
        if before == place || before == Place::Start {
            return Ok(());
        }
        self.new_row()?;
        self.print("\n")
    }

    fn draw(&mut self) -> io::Result<()> {
        let words: String = self.words(Instant::now()).chars().take(self.width()).collect();
        if words == self.drawn {
            return Ok(());
        }
        if words.is_empty() {
            self.erase()?;
            return self.out.flush();
        }
        self.new_row()?;
        match self.status {
            Status::Retrying(_) => queue!(self.out, SetForegroundColor(Color::Yellow))?,
            _ => queue!(self.out, SetAttribute(Attribute::Dim))?,
        }
        queue!(self.out, Print(&words), SetAttribute(Attribute::Reset), ResetColor)?;
        self.drawn = words;
        self.out.flush()
    }

    fn words(&self, now: Instant) -> String {
        let elapsed = now.duration_since(self.since);
        let timed = |what: &str| match elapsed.as_secs() {
            0..PATIENCE => format!("{what}..."),
            _ => format!("{what}... {}", wording::time(elapsed)),
        };
        match &self.status {
            Status::Quiet => String::new(),
            Status::Asking => timed("Waiting for the model"),
            Status::Thinking => timed("Thinking"),
            Status::Tool(name) => timed(&format!("Running {name}")),
            Status::Retrying(wait) if self.has_keys && wait.until > now => {
                format!("{} (esc to cancel, r to retry now)", wait.words(now))
            }
            Status::Retrying(wait) => wait.words(now),
            Status::Reconnecting { tried, of } => {
                timed(&format!("Connection lost, reconnecting ({tried}/{of})"))
            }
            // As a rule it is over before one could read it.
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
        self.place = Place::Start;
        self.wrap = Wrap::default();
        Ok(())
    }

    fn text(&mut self, delta: &str) -> io::Result<()> {
        self.status = Status::Quiet;
        self.enter(Place::Text)?;
        self.print(delta)?;
        self.out.flush()
    }

    fn reasoning(&mut self, delta: &str) -> io::Result<()> {
        if !self.show_reasoning {
            return self.status(Status::Thinking);
        }
        self.status = Status::Quiet;
        self.enter(Place::Reasoning)?;
        self.dim(delta)?;
        self.out.flush()
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.enter(Place::Line)?;
        self.new_row()?;
        match line {
            Line::Failure(text) => self.colored(Color::Yellow, "! ", text)?,
            Line::Error(text) => self.colored(Color::Red, "", text)?,
            Line::Note(text) => self.dim(text)?,
            Line::Tool { call, result, is_error } => {
                let color = if *is_error { Color::Red } else { Color::Green };
                self.colored(color, "\u{25cf} ", "")?;
                self.dim(&format!("{call} \u{2192} {result}"))?;
            }
        }
        self.print("\n")?;
        self.draw()?;
        self.out.flush()
    }

    fn status(&mut self, status: Status) -> io::Result<()> {
        if status != self.status {
            self.since = Instant::now();
            self.status = status;
        }
        self.draw()
    }

    fn refresh(&mut self) -> io::Result<()> {
        self.draw()
    }

    fn end(&mut self) -> io::Result<()> {
        self.status = Status::Quiet;
        self.new_row()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
