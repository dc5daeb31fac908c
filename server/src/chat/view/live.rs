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

use super::{Line, Status, View};
use crate::chat::wording;

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
    status: Status,
    since: Instant,
    /// The status line as it stands there now.
    drawn: String,
}

/// Where the cursor is, when no status line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    LineStart,
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
            place: Place::LineStart,
            status: Status::Quiet,
            since: Instant::now(),
            drawn: String::new(),
        }
    }

    /// Text as it is, but for what could steer the terminal. Raw mode wants the carriage return.
    fn print(&mut self, text: &str) -> io::Result<()> {
        let kept = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
        let plain: String = kept.collect();
        queue!(self.out, Print(plain.replace('\n', "\r\n")))
    }

    fn erase(&mut self) -> io::Result<()> {
        match mem::take(&mut self.drawn).is_empty() {
            true => Ok(()),
            false => queue!(self.out, MoveToColumn(0), Clear(ClearType::CurrentLine)),
        }
    }

    fn new_line(&mut self) -> io::Result<()> {
        self.erase()?;
        match mem::replace(&mut self.place, Place::LineStart) {
            Place::LineStart => Ok(()),
            Place::Text | Place::Reasoning => queue!(self.out, Print("\r\n")),
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        // The last column stays free: some terminals wrap as soon as it is written.
        let room = (self.columns)().saturating_sub(1);
        let words: String = self.words(Instant::now()).chars().take(room).collect();
        if words == self.drawn {
            return Ok(());
        }
        if words.is_empty() {
            self.erase()?;
            return self.out.flush();
        }
        self.new_line()?;
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
            Status::Stopping => timed("Stopping"),
        }
    }

    fn colored(&mut self, color: Color, mark: &str, text: &str) -> io::Result<()> {
        queue!(self.out, SetForegroundColor(color), Print(mark))?;
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
    fn text(&mut self, delta: &str) -> io::Result<()> {
        self.status = Status::Quiet;
        self.erase()?;
        if self.place == Place::Reasoning {
            queue!(self.out, Print("\r\n"))?;
            self.place = Place::LineStart;
        }
        self.print(delta)?;
        if let Some(last) = delta.chars().next_back() {
            self.place = if last == '\n' { Place::LineStart } else { Place::Text };
        }
        self.out.flush()
    }

    fn reasoning(&mut self, delta: &str) -> io::Result<()> {
        if !self.show_reasoning {
            return self.status(Status::Thinking);
        }
        self.status = Status::Quiet;
        self.erase()?;
        if self.place == Place::Text {
            queue!(self.out, Print("\r\n"))?;
        }
        self.dim(delta)?;
        self.place = Place::Reasoning;
        self.out.flush()
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.new_line()?;
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
        queue!(self.out, Print("\r\n"))?;
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
        self.new_line()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
