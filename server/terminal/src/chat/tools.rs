//! `/tools`: the tools offered to models, and the state of the MCP servers.

use anyhow::{Context as _, Result};
use everturn_wire::Tools;

use crate::{remote::Remote, tools};

/// The server's description of its tools.
///
/// # Errors
/// When the server cannot be asked.
pub(super) async fn answer(remote: &Remote<'_>) -> Result<String> {
    let answer = remote.get("/tools").await?;
    let told: Tools = answer.context("the server does not list tools: upgrade it")?.read()?;
    Ok(tools::text(&told))
}
