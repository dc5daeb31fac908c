//! Output for pipes and files: the answer on one stream, everything else line by line on the other.

use std::{
    io::{self, Write},
    mem,
};

use crate::visible::{Visible, visible};
use tokio::time::Instant;

use super::{Line, Status, View};

/// Writes the answer to `out` unchanged, and lines about it to `err`. What is written to a pipe or a file cannot be taken back, so
/// there the text of a step is held until it is complete: an answer that breaks off starts again.
pub(crate) struct Plain<O, E> {
    out: O,
    err: E,
    show_reasoning: bool,
    /// Removes control characters from the answer if a terminal shows it.
    visible: Option<Visible>,
    /// The text of the present step, if no terminal shows it.
    held: String,
    /// Whether the answer so far ends in an unfinished line.
    open: bool,
    /// Whether the reasoning so far ends in an unfinished line.
    thinking: bool,
}

impl<O: Write, E: Write> Plain<O, E> {
    /// With `is_terminal`, `out` is a person's terminal.
    pub(crate) fn new(out: O, err: E, is_terminal: bool, show_reasoning: bool) -> Self {
        let visible = is_terminal.then(Visible::default);
        Self { out, err, show_reasoning, visible, held: String::new(), open: false, thinking: false }
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        self.end_reasoning()?;
        writeln!(self.err, "{line}")
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.open = text.chars().next_back().map_or(self.open, |last| last != '\n');
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        if mem::take(&mut self.open) { writeln!(self.out) } else { Ok(()) }
    }

    fn end_reasoning(&mut self) -> io::Result<()> {
        if mem::take(&mut self.thinking) { writeln!(self.err) } else { Ok(()) }
    }
}

impl<O: Write, E: Write> View for Plain<O, E> {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn text(&mut self, delta: &str) -> io::Result<()> {
        self.end_reasoning()?;
        match &mut self.visible {
            Some(visible) => {
                let shown = visible.push(delta);
                self.write(&shown)
            }
            None => {
                self.held.push_str(delta);
                Ok(())
            }
        }
    }

    fn step_complete(&mut self) -> io::Result<()> {
        let held = mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(());
        }
        // Separates it from the text of the step before.
        self.end_line()?;
        self.write(&held)
    }

    fn reasoning(&mut self, delta: &str) -> io::Result<()> {
        if !self.show_reasoning {
            return Ok(());
        }
        self.thinking = delta.chars().next_back().map_or(self.thinking, |last| last != '\n');
        self.err.write_all(visible(delta).as_bytes())
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        match line {
            Line::Failure(text) | Line::Note(text) | Line::Warning(text) | Line::Error(text) => {
                self.tell(text)
            }
            Line::Restart(text) => {
                self.held.clear();
                self.end()?;
                self.tell(text)
            }
            Line::Command { remark, command } => self.tell(&format!("{remark} {command}")),
            Line::Approval { title, details } => {
                self.tell(title)?;
                details.iter().try_for_each(|line| self.tell(&format!("  | {line}")))
            }
            Line::Tool { call, result, is_error: false } => self.tell(&format!("{call} -> {result}")),
            Line::Tool { call, result, is_error: true } => self.tell(&format!("{call} failed: {result}")),
        }
    }

    fn status(&mut self, status: Status) -> io::Result<()> {
        match status {
            Status::Retrying(wait) => self.tell(&wait.words(Instant::now())),
            Status::Silent(silence) => self.tell(&silence.words(Instant::now())),
            // Not of each attempt.
            Status::Reconnecting { tried, of } if tried.is_power_of_two() => {
                self.tell(&format!("Connection lost, reconnecting ({tried}/{of})..."))
            }
            // Separates what follows from the text that is shown. What is held can still be withdrawn, with the call.
            Status::Tool(_) => self.end_line(),
            // The end of a wait needs no line, and requests for approval have their own.
            Status::Quiet
            | Status::Reconnecting { .. }
            | Status::Asking
            | Status::AskingAgain { .. }
            | Status::Summarizing
            | Status::Thinking
            | Status::Reviewing(_)
            | Status::Approval(_)
            | Status::Question
            | Status::Stopping => Ok(()),
        }
    }

    /// There is no input.
    fn draft(&mut self, _: &str, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn refresh(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_reasoning()?;
        self.step_complete()?;
        self.end_line()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        super::{Count, Wait},
        *,
    };

    #[tokio::test(start_paused = true)]
    async fn the_answer_is_alone_on_its_stream_and_ends_with_a_line_break() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut view = Plain::new(&mut out, &mut err, false, false);
        let until = Instant::now() + Duration::from_secs(5);
        view.reasoning("hm").unwrap();
        view.line(&Line::Failure("HTTP 529: Overloaded".to_owned())).unwrap();
        view.status(Status::Retrying(Wait {
            count: Count { attempt: 0, of: Some(21), is_shared: false },
            until,
            ends: None,
            of_summary: false,
            of_caller: false,
        }))
        .unwrap();
        view.text("one").unwrap();
        view.status(Status::Tool("roll".to_owned())).unwrap();
        view.step_complete().unwrap();
        view.line(&Line::Tool { call: "roll {}".to_owned(), result: "4".to_owned(), is_error: false })
            .unwrap();
        view.text("two\n").unwrap();
        view.text("three\u{1b}").unwrap();
        view.end().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "one\ntwo\nthree\u{1b}\n");
        let expected = "HTTP 529: Overloaded\nRetrying (1/21) in 5s...\nroll {} -> 4\n";
        assert_eq!(String::from_utf8(err).unwrap(), expected);
    }

    #[test]
    fn what_breaks_off_is_not_written_to_a_pipe_and_ends_its_line_in_a_terminal() {
        for (is_terminal, expected) in
            [(false, "Let me roll.\nSeven.\n"), (true, "Let me roll.\nSix and a\nSeven.\n")]
        {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut view = Plain::new(&mut out, &mut err, is_terminal, false);
            view.text("Let me roll.\n").unwrap();
            view.step_complete().unwrap();
            view.text("Six and a").unwrap();
            view.status(Status::Tool("roll".to_owned())).unwrap();
            view.line(&Line::Restart("It starts again.".to_owned())).unwrap();
            view.text("Seven.").unwrap();
            view.end().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(String::from_utf8(err).unwrap(), "It starts again.\n");
        }
    }

    #[test]
    fn reasoning_that_is_asked_for_has_lines_of_its_own() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut view = Plain::new(&mut out, &mut err, false, true);
        view.reasoning("let me ").unwrap();
        view.reasoning("see").unwrap();
        view.text("42").unwrap();
        view.end().unwrap();
        assert_eq!((out.as_slice(), err.as_slice()), (&b"42\n"[..], &b"let me see\n"[..]));
    }
}
