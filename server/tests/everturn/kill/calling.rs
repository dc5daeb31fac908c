//! An MCP server that notes the calls of its tools: what a turn did to it can be counted.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use super::provider::Call;
use crate::home::Home;

/// One call that may not run twice, and one that may: its tool is declared idempotent, by a server that is trusted.
pub(crate) const CALLS: [Call; 2] =
    [Call { id: "call_1", tool: "counting__once" }, Call { id: "call_2", tool: "counting__again" }];

/// What its tools answer.
const ANSWER: &str = "noted";

/// A line for each call that arrived: the tool's own name.
fn trace(home: &Home) -> PathBuf {
    home.place("calls")
}

/// Adds the server to the configuration.
pub(crate) fn configure(home: &Home) {
    let e2e = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("e2e");
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

/// The first call ran once, or its one run was interrupted and is said to have been. The second one has its answer.
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
