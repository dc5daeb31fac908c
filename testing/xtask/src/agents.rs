//! Runs real coding agents behind the server: installs them from npm (1.3 GB, outside the repository's own packages), and
//! runs them without a network. Not part of the tests.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

/// The packages, in the versions that the last table of `notes/agents.md` was made with or newer.
const PACKAGES: [&str; 4] =
    ["@anthropic-ai/claude-code", "@openai/codex", "opencode-ai", "@mariozechner/pi-coding-agent"];

/// Installs the agents in `target/agents` or `EVERTURN_AGENTS`, and runs them. `filters` are names of agents and of
/// scenarios, each separated by commas.
pub(crate) fn run(root: &Path, filters: &[&str]) -> Result<()> {
    let place = env::var_os("EVERTURN_AGENTS").map_or_else(|| root.join("target/agents"), Into::into);
    let bin = place.join("node_modules/.bin");
    if !bin.join("claude").exists() {
        fs::create_dir_all(&place)?;
        let words = ["install", "--no-audit", "--no-fund", "--prefix"];
        run_to_end(Command::new("npm").args(words).arg(&place).args(PACKAGES))?;
    }
    run_to_end(Command::new("cargo").args(["build", "-p", "everturn"]).current_dir(root))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let script = root.join("testing/agents/run.mjs");
    let run = &mut Command::new("node");
    run_to_end(run.arg(script).arg(target.join("debug/everturn")).arg(bin).args(filters).current_dir(root))
}

fn run_to_end(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {program}: install it"))?;
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    Ok(())
}
