//! One step of a longer run: named, timed, and the last one if it fails.

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};

/// Runs a step, and prints how long it took. The error names the step.
pub(crate) fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("\n==> {name}");
    let begun = Instant::now();
    let outcome = work();
    let seconds = begun.elapsed().as_secs_f32();
    let word = if outcome.is_ok() { "passed" } else { "FAILED" };
    println!("<== {name}: {word} in {seconds:.1} s");
    outcome.with_context(|| format!("step \"{name}\" failed"))
}

/// Runs a command without input. Returns an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}`: {status}");
    }
    Ok(())
}

/// Formats the command as a person would type it.
fn shown(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs a command, and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}`: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not print text"))
}
