//! The workspace according to cargo.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Returns cargo's metadata of the workspace.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--format-version=1"]).current_dir(root);
    let output = command.output().context("cannot start `cargo metadata`")?;
    serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")
}

/// Returns the target directory.
pub(crate) fn target(metadata: &Value) -> PathBuf {
    metadata["target_directory"].as_str().unwrap_or("target").into()
}

/// Returns the directory of what `cargo test` built. One profile serves all steps.
pub(crate) fn built(metadata: &Value) -> PathBuf {
    target(metadata).join("debug")
}
