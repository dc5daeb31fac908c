//! Every check and test, in order; the first failure ends the run.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{
    costs, dist, generate,
    step::{run, step},
    tool,
    workspace::{built, metadata, target},
};

/// Timeout of a file of end-to-end tests, in milliseconds.
const E2E_TIMEOUT: &str = "--test-timeout=900000";

/// Number of concurrent test files. Each has its own server, and mostly waits for a browser.
const E2E_AT_ONCE: &str = "--test-concurrency=2";

/// Select the share of the plans to kill real processes, and of the end-to-end files, as `number/shares` from `0/1`, which is all:
/// they take minutes. By default, each commit runs one of so many.
const KILL_SHARE: (&str, usize) = ("EVERTURN_KILL_SHARE", 3);
const E2E_SHARE: (&str, usize) = ("EVERTURN_E2E_SHARE", 2);

/// Names the NATS server for tests, which must not skip then.
const NATS_SERVER: &str = "EVERTURN_NATS_SERVER";

/// Cargo's number of tests that run at once in a program.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Names the programs of Postgres for tests, which must not skip then.
const POSTGRES: &str = "EVERTURN_POSTGRES_BIN";

/// Builds the server with everything that its default build lacks. Given to each step, so that nothing is built twice.
const FULL: [&str; 2] = ["--features", "everturn/full"];

/// Packages for development only.
const UNPUBLISHED: [&str; 5] =
    ["everturn-sim", "everturn-model", "everturn-bench", "everturn-examples", "xtask"];

/// Tests of the binary that plain `cargo test` skips, so that it needs nothing but Rust. Of the whole workspace like all others: for one
/// package alone, cargo would build its dependencies again with fewer features.
const WITH_NODE: [&str; 11] = [
    "test",
    "--locked",
    "--workspace",
    FULL[0],
    FULL[1],
    "--test",
    "everturn",
    "--",
    "--ignored",
    "kill::no_mcp_call_runs_twice",
    "cluster::",
];

/// How long the soak test runs.
const SOAK: &str = "EVERTURN_SOAK_MINUTES";

/// Runs the soak test for so many minutes.
pub(crate) fn soak(root: &Path, minutes: &str) -> Result<()> {
    minutes.parse::<f64>().with_context(|| format!("{minutes:?} is not a number of minutes"))?;
    let mut command = Command::new(cargo_path());
    command.args(["test", "--locked", "--package", "everturn", FULL[0], FULL[1], "--test", "everturn", "--"]);
    run(command.args(["soak::", "--nocapture"]).current_dir(root).env(SOAK, minutes))
}

/// Runs everything.
pub(crate) fn all(root: &Path) -> Result<()> {
    let begun = Instant::now();
    let (number, shares) = share(root, KILL_SHARE)?;
    let (kills, files) = (format!("{number}/{shares}"), share(root, E2E_SHARE)?);
    let target = target(&metadata(root)?);
    step("tools", || tool::install(root, &target))?;
    step("formatting", || cargo(root, &["fmt", "--all", "--check"]))?;
    step("generated files", || generate::check(root))?;
    step("costs", || costs::check(root))?;
    step("lints", || lints(root, &FULL))?;
    step("lints of the default build", || lints(root, &[]))?;
    let nats = tool::nats_server_in(&target);
    step("Rust tests", || {
        cargo_with(
            root,
            &[&["test", "--locked", "--no-fail-fast", "--workspace"], &FULL[..]].concat(),
            &kills,
            &nats,
        )
    })?;
    step("Rust tests of the default build", || {
        cargo_with(root, &["test", "--locked", "--workspace", "--test", "feature"], &kills, &nats)
    })?;
    step("Rust tests that need Node", || cargo_with(root, &WITH_NODE, &kills, &nats))?;
    step("documentation", || documentation(root))?;
    step("packages", || packages(root))?;
    step("examples", || examples(root))?;
    step("TypeScript", || typescript(root))?;
    step("end to end", || end_to_end(root, files, &nats))?;
    step("artifacts", || dist::check(root, &built(&metadata(root)?).join("everturn")))?;
    println!("\nall steps passed in {:.0} s", begun.elapsed().as_secs_f32());
    Ok(())
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    run(Command::new(cargo_path()).args(arguments).current_dir(root))
}

/// Runs cargo with a share of the kills, a NATS server and Postgres. Tests that start processes mostly wait for them, so two run for
/// each core.
fn cargo_with(root: &Path, arguments: &[&str], share: &str, nats: &Path) -> Result<()> {
    let mut command = Command::new(cargo_path());
    command.args(arguments).current_dir(root).env(KILL_SHARE.0, share).env(NATS_SERVER, nats);
    if env::var_os(TEST_THREADS).is_none() {
        command.env(TEST_THREADS, (2 * thread::available_parallelism()?.get()).to_string());
    }
    run(command.envs(tool::postgres().map(|programs| (POSTGRES, programs))))
}

/// Returns the share to run, selected by the environment or the commit: its number, from 0, and the number of shares.
fn share(root: &Path, (variable, shares): (&str, usize)) -> Result<(usize, usize)> {
    let share = env::var(variable).unwrap_or_else(|_| {
        let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
        let digits = head.map(|output| output.stdout).unwrap_or_default();
        let sum: usize = digits.iter().copied().map(usize::from).sum();
        format!("{}/{shares}", sum % shares)
    });
    println!("{variable}={share}");
    let read = |(number, of): (&str, &str)| Some((number.parse().ok()?, of.parse().ok()?));
    let read = share.split_once('/').and_then(read).filter(|(number, of)| number < of);
    read.with_context(|| format!("{variable} is {share:?}: write it like 0/{shares}, or 0/1 for all"))
}

fn cargo_path() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Checks the code of the workspace with these features.
fn lints(root: &Path, features: &[&str]) -> Result<()> {
    let clippy = ["clippy", "--locked", "--workspace", "--all-targets"];
    cargo(root, &[&clippy, features, &["--", "-D", "warnings"]].concat())
}

/// Builds the documentation. Warnings, such as dead links, are errors.
fn documentation(root: &Path) -> Result<()> {
    let mut command = Command::new(cargo_path());
    command.args(["doc", "--locked", "--workspace", "--no-deps", "--quiet"]).args(FULL).current_dir(root);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Packs the published crates. Compiling the packages again would take as long as everything else.
fn packages(root: &Path) -> Result<()> {
    let mut arguments = vec!["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"];
    arguments.extend(UNPUBLISHED.iter().flat_map(|name| ["--exclude", name]));
    cargo(root, &arguments)
}

/// Runs the examples, which end by themselves. The Rust tests built most of them, but not those that are tests
/// themselves.
fn examples(root: &Path) -> Result<()> {
    cargo(root, &[&["build", "--locked", "--workspace", "--examples"], &FULL[..]].concat())?;
    let metadata = metadata(root)?;
    let folder = built(&metadata).join("examples");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let examples = targets.filter(|target| target["kind"][0] == "example");
    for name in examples.filter_map(|target| target["name"].as_str()) {
        println!("--- {name}");
        run(Command::new(folder.join(name)).current_dir(root))?;
    }
    Ok(())
}

/// Compiles a client against the generated declarations.
fn typescript(root: &Path) -> Result<()> {
    let folder = root.join(tool::E2E);
    run(Command::new("node")
        .arg(folder.join("node_modules/typescript/bin/tsc"))
        .arg("-p")
        .arg(folder.join("types")))
}

/// Runs the Node and browser tests against the server's binary.
fn end_to_end(root: &Path, share: (usize, usize), nats: &Path) -> Result<()> {
    // With the same targets as `cargo test`, nothing is built twice.
    cargo(root, &[&["build", "--locked", "--workspace", "--bins", "--tests"], &FULL[..]].concat())?;
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-reporter=spec", E2E_AT_ONCE, E2E_TIMEOUT])
        .args(end_to_end_files(root, share)?)
        .current_dir(root);
    command.env("EVERTURN_BIN", built(&metadata(root)?).join("everturn")).env(NATS_SERVER, nats);
    if let Some(chromium) = tool::chromium() {
        command.env("EVERTURN_CHROMIUM", chromium);
    }
    run(&mut command)
}

fn end_to_end_files(root: &Path, (number, shares): (usize, usize)) -> Result<Vec<PathBuf>> {
    let folder = root.join(tool::E2E);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    let files: Vec<PathBuf> = files.into_iter().skip(number).step_by(shares).collect();
    if files.is_empty() {
        bail!("{number}/{shares} selects no end-to-end test of {}", folder.display());
    }
    Ok(files)
}
