//! An MCP server that records the calls of its tools, so that they can be counted.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use super::provider::Call;
use crate::home::Home;

/// A call that must not run twice, and one that may: its tool is declared idempotent, by a trusted server.
pub(crate) const CALLS: [Call; 2] =
    [Call { id: "call_1", tool: "counting__once" }, Call { id: "call_2", tool: "counting__again" }];

/// The result of its tools.
const ANSWER: &str = "noted";

/// A file with a line for each call: the tool's own name.
fn trace(home: &Home) -> PathBuf {
    home.place("calls")
}

/// Adds the server to the configuration.
pub(crate) fn configure(home: &Home) {
    let e2e = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("testing").join("e2e");
    let installed = e2e.join("node_modules/@modelcontextprotocol/sdk");
    assert!(
        installed.exists(),
        "{} is missing: run `cargo xtask test`, or `npm ci` in e2e",
        installed.display()
    );
    let script = e2e.join("support/counting-server.mjs");
    let config = home.place("everturn/config.toml");
    let mut file = OpenOptions::new().append(true).open(config).unwrap();
    let server = format!(
        "[[mcp]]\nname = \"counting\"\ncommand = \"node\"\nargs = [{:?}, {:?}]\ntrust_annotations = true\n",
        script.display().to_string(),
        trace(home).display().to_string()
    );
    file.write_all(server.as_bytes()).unwrap();
}

/// Checks that the first call ran once, or that its only run is reported as interrupted, and that the second call has
/// its result.
pub(crate) fn check(home: &Home, kills: usize, once: &str, again: &str) {
    let trace = fs::read_to_string(trace(home)).unwrap_or_default();
    let count = |tool: &str| trace.lines().filter(|line| *line == tool).count();
    let runs = count("once");
    assert!(runs <= 1, "it ran {runs} times");
    let was_interrupted = once.contains("interrupted");
    assert!(was_interrupted || (runs, once) == (1, ANSWER), "{runs}: {once}");
    assert!(!was_interrupted || kills > 0, "nothing interrupted it: {once}");
    let runs = count("again");
    assert!((1..=1 + kills).contains(&runs), "an idempotent call ran {runs} times with {kills} kills");
    assert_eq!(again, ANSWER);
}
