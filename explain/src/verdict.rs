//! What is said of an input that is no failure.

use std::io::Write;

use anyhow::Result;
use everturn_console::{
    printer::{Ink, Printer},
    wording,
};
use serde_json::json;

/// Why there is nothing to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The input is a complete answer.
    Success,
    /// Nothing in the input is known for a failure.
    Unrecognised,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Self::Success => "This is a success: the stream has a complete answer.",
            Self::Unrecognised => "This is not recognised as a provider failure.",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Success => "Paste the response that failed instead.",
            Self::Unrecognised => {
                "Paste the response as curl -i prints it; its body alone, with --status; the last lines of an SDK's \
                 traceback; or name how the connection failed with --transport."
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Unrecognised => "unrecognised",
        }
    }

    /// Says so. `said`: what the input says.
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
