//! Shell completions and manual pages, generated from the command line definition.

use std::{fs, io, io::Write as _, path::Path, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use everturn_terminal::printer;

use crate::cli::Cli;

const NAME: &str = "everturn";

/// Prints a shell's completions.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut <Cli as CommandFactory>::command(), NAME, &mut script);
    let written = io::stdout().write_all(&script).context("cannot write the completions");
    printer::unless_closed(written.map(|()| ExitCode::SUCCESS))
}

/// Writes a manual page for the program and for each of its commands.
pub(crate) fn pages(directory: &Path) -> Result<ExitCode> {
    let write = || {
        fs::create_dir_all(directory)?;
        clap_mangen::generate_to(<Cli as CommandFactory>::command(), directory)
    };
    write().with_context(|| format!("cannot write manual pages to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
