//! Logging to standard error.

use std::io;

use anyhow::{Context as _, Result};
use everturn_terminal::printer;
use tracing_subscriber::EnvFilter;

use crate::config::Environment;

/// Starts logging at the level of `EVERTURN_LOG`, else `usual`.
pub(crate) fn start(environment: &Environment<'_>, usual: &str) -> Result<()> {
    let asked = environment.get("EVERTURN_LOG").unwrap_or_else(|| usual.to_owned());
    // The MCP SDK logs URLs and messages including secrets, so it is off unless named explicitly.
    let asked = if asked.contains("rmcp") { asked } else { format!("{asked},rmcp=off") };
    let filter = EnvFilter::try_new(asked)
        .context("EVERTURN_LOG is invalid: write a level like debug, or everturn_provider=debug")?;
    let has_color = printer::has_ink(&io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(has_color).init();
    Ok(())
}
