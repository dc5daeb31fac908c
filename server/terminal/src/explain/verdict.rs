//! The answer to an input that is not a failure.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use serde_json::json;

use crate::{
    printer::{Ink, Printer},
    wording,
};

/// Why there is nothing to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The input is a complete answer.
    Success,
    /// The input matches no known failure.
    Unrecognised,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Self::Success => "This is not a failure: the stream contains a complete answer.",
            Self::Unrecognised => "This is not recognised as a provider failure.",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Success => "Paste the response that failed instead.",
            Self::Unrecognised => {
                "Paste the output of curl -i, a body with --status, or the last lines of an SDK's \
                 traceback; or name the connection error with --transport."
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Unrecognised => "unrecognised",
        }
    }

    pub(super) fn exit_code(self) -> ExitCode {
        match self {
            Self::Success => ExitCode::SUCCESS,
            Self::Unrecognised => ExitCode::FAILURE,
        }
    }

    /// Prints the verdict. `said`: the text of the input.
    pub(super) fn write(self, printer: &mut Printer<impl Write>, said: &str, json: bool) -> Result<()> {
        if json {
            let object = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "verdict": self.name(),
                "message": self.words(),
                "advice": self.advice(),
            });
            printer.line(Ink::Plain, &serde_json::to_string(&object)?)?;
        } else {
            if self == Self::Unrecognised && !said.is_empty() {
                printer.block(Ink::Strong, "", &wording::brief(said))?;
                printer.line(Ink::Plain, "")?;
            }
            printer.block(Ink::Plain, "", self.words())?;
            printer.block(Ink::Plain, "", self.advice())?;
        }
        Ok(printer.flush()?)
    }
}
