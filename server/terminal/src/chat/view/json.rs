//! Output for programs: the events as sent by the server, one per line.

use std::io::{self, Write};

use super::{Line, Status, View};

/// Writes events to `out`; `err` gets errors and warnings only.
pub(crate) struct Json<O, E> {
    out: O,
    err: E,
}

impl<O: Write, E: Write> Json<O, E> {
    pub(crate) fn new(out: O, err: E) -> Self {
        Self { out, err }
    }
}

impl<O: Write, E: Write> View for Json<O, E> {
    fn event(&mut self, json: &str) -> io::Result<()> {
        // In one piece, so that readers never see half a line.
        self.out.write_all(format!("{json}\n").as_bytes())?;
        self.out.flush()
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        match line {
            Line::Error(text) | Line::Warning(text) => writeln!(self.err, "{text}"),
            _ => Ok(()),
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn text(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn reasoning(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn status(&mut self, _: Status) -> io::Result<()> {
        Ok(())
    }

    fn draft(&mut self, _: &str, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn refresh(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}
