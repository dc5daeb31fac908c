//! `/tools`: what models are offered, and how the MCP servers are.

use anyhow::{Context as _, Result};
use everturn_console::Hidden;
use everturn_wire::Tools;

use crate::{
    remote::{Address, Remote},
    tools,
};

const TOOLS: &str = "/tools";

/// Whether a line asks for that.
pub(super) fn is_asked(line: &str) -> bool {
    line.trim() == TOOLS
}

/// What the server tells of its tools.
///
/// # Errors
/// When the server cannot be asked.
pub(super) async fn answer(address: &Address, token: Option<&Hidden>) -> Result<String> {
    let answer = Remote::new(address, token)?.get("/tools").await?;
    let told: Tools = answer.context("the server does not list tools: upgrade it")?.read()?;
    Ok(tools::text(&told))
}
