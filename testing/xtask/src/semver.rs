//! `cargo xtask semver`: whether what the published crates export is compatible with what was released. Not part of the tests: the
//! tool has more packages than this project, and each crate is documented twice.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result};

use crate::{step::run, workspace};

/// The version of `cargo-semver-checks`.
const VERSION: &str = "0.51.0";

/// The commit that the crates are compared with: that of the last release. Until there is one, the first that was checked. If the
/// version of a crate in `Cargo.toml` allows what it breaks, it passes.
const BASELINE: &str = "4bed9d24e1cb60e7192eb13ddd4325b3adb17eb8";

/// Checks all crates that are published and can be linked.
pub(crate) fn check(root: &Path) -> Result<()> {
    let metadata = workspace::metadata(root)?;
    let tools = workspace::target(&metadata).join("tools");
    let program = tools.join("bin/cargo-semver-checks");
    if !program.exists() {
        let words = ["install", "cargo-semver-checks", "--locked", "--debug", "--no-default-features"];
        run(Command::new(env!("CARGO")).args(words).args(["--version", VERSION, "--root"]).arg(&tools))?;
    }
    let mut command = Command::new(program);
    command.args(["semver-checks", "--baseline-rev", BASELINE]).current_dir(root);
    for package in metadata["packages"].as_array().context("no packages")? {
        let has_library = |target: &serde_json::Value| {
            target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"))
        };
        let is_linked = package["targets"].as_array().is_some_and(|targets| targets.iter().any(has_library));
        // `publish = false` is an empty list.
        if is_linked && !package["publish"].is_array() {
            command.args(["--package", package["name"].as_str().context("a package without a name")?]);
        }
    }
    run(&mut command)
}
