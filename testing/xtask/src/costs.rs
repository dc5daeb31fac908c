//! `cargo xtask costs`: what the project weighs, against limits. Raise a limit only together with a reason.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    step::{output, run},
    workspace,
};

/// Entries of the repository's first folder. A newcomer reads all of them.
const ENTRIES: usize = 31;

/// Packages of a build, ours among them: what the first command builds, and what is released.
const PACKAGES: usize = 260;
const PACKAGES_FULL: usize = 330;

/// Lines of Rust that ship, without tests.
const LINES: usize = 105_750;

/// The first build on two cores, in seconds.
const BUILD: usize = 240;

/// The binary of the first build without symbols, in bytes.
const BINARY: usize = 25_000_000;

/// Folders whose Rust does not ship.
const DEVELOPMENT: [&str; 2] = ["testing/", "examples/"];

/// Checks what can be counted in a moment.
pub(crate) fn check(root: &Path) -> Result<()> {
    let files = tracked(root)?;
    let entries: BTreeSet<_> = files.iter().filter_map(|file| file.split('/').next()).collect();
    let over = [
        exceeds("entries of the first folder", entries.len(), ENTRIES),
        exceeds("packages of the default build", packages(root, &[])?, PACKAGES),
        exceeds("packages of the full build", packages(root, &["--features", "full"])?, PACKAGES_FULL),
        exceeds("lines of Rust that ship", lines(root, &files)?, LINES),
    ];
    ensure!(!over.contains(&true), "a limit of testing/xtask/src/costs.rs is exceeded");
    Ok(())
}

/// Measures the first build too, in an empty folder. The sources of packages are downloaded before.
pub(crate) fn build(root: &Path) -> Result<()> {
    check(root)?;
    let target = workspace::target(&workspace::metadata(root)?).join("costs");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    run(Command::new(env!("CARGO")).args(["fetch", "--locked"]).current_dir(root))?;
    let begun = Instant::now();
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--release", "--locked", "--offline", "--package", "everturn", "--target-dir"]);
    run(command.arg(&target).current_dir(root))?;
    let seconds = usize::try_from(begun.elapsed().as_secs())?;
    let stripped = strip(&target.join("release/everturn"), &target.join("everturn"))?;
    let over = [
        exceeds("seconds of the first build", seconds, BUILD),
        exceeds("bytes of its binary", stripped, BINARY),
    ];
    fs::remove_dir_all(&target)?;
    ensure!(!over.contains(&true), "the first build is over its limit");
    Ok(())
}

fn strip(binary: &Path, stripped: &PathBuf) -> Result<usize> {
    output(Command::new("strip").arg("-o").arg(stripped).arg(binary))?;
    Ok(usize::try_from(fs::metadata(stripped)?.len())?)
}

/// Prints a figure. Returns whether it exceeds its limit.
fn exceeds(what: &str, figure: usize, limit: usize) -> bool {
    let over = figure > limit;
    println!("{figure:>12} {what}, limit {limit}{}", if over { ": EXCEEDED" } else { "" });
    over
}

/// Returns the files under version control.
fn tracked(root: &Path) -> Result<Vec<String>> {
    let listed = output(Command::new("git").arg("ls-files").current_dir(root))?;
    Ok(listed.lines().map(str::to_owned).collect())
}

fn packages(root: &Path, features: &[&str]) -> Result<usize> {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "tree",
        "--locked",
        "--package",
        "everturn",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ]);
    let tree = output(command.args(features).current_dir(root))?;
    let packages: BTreeSet<_> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    if packages.len() < 2 {
        bail!("`cargo tree` listed no packages");
    }
    Ok(packages.len())
}

fn lines(root: &Path, files: &[String]) -> Result<usize> {
    let ships = |file: &&String| {
        file.ends_with(".rs")
            && !DEVELOPMENT.iter().any(|folder| file.starts_with(folder))
            && !["/tests/", "/benches/"].iter().any(|folder| file.contains(folder))
            && !file.ends_with("/tests.rs")
    };
    let (mut lines, mut of_tests) = (BTreeMap::new(), Vec::new());
    for file in files.iter().filter(ships) {
        // A file that is being deleted is still tracked.
        let Ok(source) = fs::read_to_string(root.join(file)) else { continue };
        let code = source.split("#[cfg(test)]\nmod tests {").next().context("split returns something")?;
        lines.insert(Path::new(file), code.lines().count());
        of_tests.extend(test_modules(Path::new(file), code));
    }
    lines.retain(|file, _| !of_tests.iter().any(|tests| file == tests));
    Ok(lines.values().sum())
}

/// Returns the files of modules that a source declares for tests.
fn test_modules<'s>(file: &'s Path, source: &'s str) -> impl Iterator<Item = PathBuf> + 's {
    let declared = source.split("#[cfg(test)]\n").skip(1).filter_map(|rest| rest.split_once(";\n"));
    let names = declared.filter_map(|(declaration, _)| declaration.split("mod ").nth(1));
    names.map(|name| file.with_extension("").join(name).with_extension("rs"))
}
