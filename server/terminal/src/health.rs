//! `everturn health`: checks whether a server answers, for container and process supervisors.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use everturn_wire::Health;

use crate::{
    Hidden,
    args::Running,
    printer::{Ink, Printer},
    running,
};

/// Prints that a server answers.
///
/// # Errors
/// When it does not answer, or is not an Everturn server.
pub async fn run(args: &Running, token: Option<&Hidden>) -> Result<ExitCode> {
    let print = |_: &Health, _, printer: &mut Printer<_>| said(printer);
    running::print(args, token, ("/health", "its health"), print).await
}

fn said(printer: &mut Printer<impl Write>) -> Result<ExitCode> {
    printer.line(Ink::Good, "ok")?;
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}
