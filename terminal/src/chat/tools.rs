//! `/tools`: what models are offered, and how the MCP servers are.

use anyhow::{Context as _, Result};
use everturn_wire::Tools;

use crate::{remote::Remote, tools};

/// What the server tells of its tools.
///
/// # Errors
/// When the server cannot be asked.
pub(super) async fn answer(remote: &Remote<'_>) -> Result<String> {
    let answer = remote.get("/tools").await?;
    let told: Tools = answer.context("the server does not list tools: upgrade it")?.read()?;
    Ok(tools::text(&told))
}
