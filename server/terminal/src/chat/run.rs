//! One turn for a script: prints its report or answer to standard output, everything else to standard error.

use std::{
    io::{self, IsTerminal as _, Write},
    process::ExitCode,
};

use anyhow::{Result, anyhow, bail};
use everturn_wire::{FinalReport, RequiredReport};

use super::{
    Host, Terminal, exit_code,
    host::Found,
    key::Keys,
    link::Link,
    message,
    story::{Beginning, Ending},
    turn::{Shown, Start, Turn},
    view::{Json, Line, Plain, View},
};
use crate::{
    Interrupt, args,
    printer::{self, Ink, Printer},
    visible,
};

/// Runs a turn to its end.
///
/// # Errors
/// When it cannot begin, or the server connection is lost.
pub async fn run_once(
    chat: &args::Chat,
    required: Option<RequiredReport>,
    host: impl AsyncFnOnce() -> Result<Host>,
) -> Result<ExitCode> {
    let ended = run_turn(chat, required, host).await;
    if chat.json { printer::unless_closed(ended) } else { ended }
}

async fn run_turn(
    chat: &args::Chat,
    required: Option<RequiredReport>,
    host: impl AsyncFnOnce() -> Result<Host>,
) -> Result<ExitCode> {
    let message = message::of_script(chat)?;
    let terminal = Terminal::NONE;
    let mode = terminal.approvals(chat)?;
    let mut interrupt = Interrupt::listen()?;
    let host = host().await?;
    let Found { id: conversation_id, is_active, .. } = host.conversation(chat).await?;
    let mut link = Link::open(&host.server, chat.json).await?;
    let permissions = terminal.permissions(mode, chat, &conversation_id);
    let mut view = view(chat, required.is_some());
    for note in &host.notes {
        view.line(&Line::Warning(note.clone()))?;
    }
    if is_active {
        // One turn at a time: first resume one that an earlier process left unfinished.
        let links = (&mut link, &host.server);
        let mut turn =
            Turn::expect(Beginning::Running, &conversation_id, links, view.as_mut(), &permissions)?;
        turn.start(Start::Watch, None).await?;
        host.resume(&conversation_id).await?;
        let shown = turn.run(&mut Keys::none(&mut interrupt)).await?;
        if message.is_none() {
            return outcome(shown, required.is_some(), chat.json);
        }
        if matches!(shown.ending, Ending::Refused | Ending::Interrupted) {
            return Ok(exit_code(shown.ending));
        }
    }
    let Some(message) = message else {
        bail!(
            "conversation {conversation_id} has no unfinished turn: say something, as in everturn run --continue \"And now?\""
        );
    };
    let must_report = required.is_some();
    let (links, beginning) = ((&mut link, &host.server), Beginning::Message(message.clone()));
    let mut turn = Turn::expect(beginning, &conversation_id, links, view.as_mut(), &permissions)?;
    let start = match required {
        Some(report) => Start::Report(message, Box::new(report)),
        None => Start::Say(message, Vec::new()),
    };
    turn.start(start, chat.model.clone()).await?;
    outcome(turn.run(&mut Keys::none(&mut interrupt)).await?, must_report, chat.json)
}

/// Prints the report, if there must be one, and returns the exit code. `json`: standard output has the events instead.
fn outcome(shown: Shown, must_report: bool, json: bool) -> Result<ExitCode> {
    match shown.report {
        Some(report) if must_report => {
            let code = if report.report.is_some() {
                ExitCode::SUCCESS
            } else if shown.ending == Ending::Interrupted {
                exit_code(shown.ending)
            } else {
                ExitCode::FAILURE
            };
            if json { Ok(code) } else { print(&report, code) }
        }
        None if must_report && shown.ending == Ending::Answered => {
            Err(anyhow!("the turn ended without a report: the server does not know of reports, update it"))
        }
        _ => Ok(exit_code(shown.ending)),
    }
}

fn view(chat: &args::Chat, must_report: bool) -> Box<dyn View> {
    if chat.json {
        return Box::new(Json::new(io::stdout(), io::stderr()));
    }
    // If a report is required, the model's other text is not part of the output.
    let answer: Box<dyn Write> = if must_report { Box::new(io::sink()) } else { Box::new(io::stdout()) };
    Box::new(Plain::new(answer, Dim::stderr(), io::stdout().is_terminal(), chat.show_reasoning))
}

/// Prints the model's report, or the one that says why there is none.
fn print(report: &FinalReport, code: ExitCode) -> Result<ExitCode> {
    let json = match &report.report {
        Some(value) => serde_json::to_string_pretty(value)?,
        None => serde_json::to_string_pretty(report)?,
    };
    let mut printer = Printer::of_stdout();
    let written = printer.line(Ink::Plain, &visible::json(&json)).and_then(|()| printer.flush());
    printer::unless_closed(written.map(|()| code).map_err(Into::into))
}

/// A writer whose output is dim in a terminal.
struct Dim<W> {
    out: W,
    is_dim: bool,
}

impl Dim<io::Stderr> {
    fn stderr() -> Self {
        Self { out: io::stderr(), is_dim: printer::has_ink(&io::stderr()) }
    }
}

impl<W: Write> Write for Dim<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // In one piece: output of a child process in between must not become dim.
        match self.is_dim {
            true => self.out.write_all(&[b"\x1b[2m", bytes, b"\x1b[0m"].concat())?,
            false => self.out.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_dim_for_a_person_only() {
        for (is_dim, expected) in [(true, "\u{1b}[2mRetrying\u{1b}[0m"), (false, "Retrying")] {
            let mut dim = Dim { out: Vec::new(), is_dim };
            dim.write_all(b"Retrying").unwrap();
            assert_eq!(String::from_utf8(dim.out).unwrap(), expected);
        }
    }
}
