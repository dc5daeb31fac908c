//! The project's own commands: `cargo xtask test`, `generate`, `dist`, `costs`, `soak`, `agents` and `semver`.
#![allow(clippy::print_stdout, reason = "a command line tool talks on its standard output")]

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

mod agents;
mod costs;
mod dist;
mod generate;
mod semver;
mod step;
mod test;
mod tool;
mod workspace;

const USAGE: &str = "\
usage: cargo xtask <command>

  test       install what the tests need where it is missing, then run every check and test
  generate   write the documents made from the wire types (wire/generated)
  dist       build what is released, into target/artifacts: a tarball, a Debian package, a wheel, an npm package, an image
  dist --check BINARY
             make the same of a binary that is built already, install each into an empty environment, and run the demo there
  costs      count entries, packages and lines, against their limits
  costs --build
             also measure the first build and its binary, which takes minutes
  soak --minutes N
             run everything at once against one server that lives on and one that is killed again and again, and report whether
             memory, descriptors, threads and files of the first keep growing
  agents     install real coding agents (1.3 GB), and run them behind a failing provider: agents [AGENT,...] [SCENARIO,...]
  semver     check that what the published crates export is compatible with the last release, which takes minutes";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => test::all(&root()),
        ["agents", filters @ ..] if filters.len() <= 2 => agents::run(&root(), filters),
        ["soak", "--minutes", minutes] => test::soak(&root(), minutes),
        ["generate"] => generate::write(&root()),
        ["dist"] => dist::build(&root()),
        ["costs"] => costs::check(&root()),
        ["costs", "--build"] => costs::build(&root()),
        ["semver"] => semver::check(&root()),
        ["dist", "--check", binary] => dist::check(&root(), binary.as_ref()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
