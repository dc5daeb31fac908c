//! The project's own commands: `cargo xtask test` and `cargo xtask generate`.
#![allow(clippy::print_stdout, reason = "a command line tool talks on its standard output")]

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

mod generate;
mod step;
mod test;
mod tool;

const USAGE: &str = "\
usage: cargo xtask <command>

  test       install what the tests need where it is missing, then run every check and test
  generate   write the documents made from the wire types (wire/generated)";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => test::all(&root()),
        ["generate"] => generate::write(&root()),
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
