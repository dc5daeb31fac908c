//! Checks which crates may depend on which, and on what from outside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use serde_json::Value;

/// The workspace packages that each package may depend on. Dev-dependencies are not checked.
const ALLOWED: [(&str, &[&str]); 23] = [
    ("everturn-wire", &[]),
    ("everturn-kernel", &["everturn-wire"]),
    ("everturn-pacing", &["everturn-kernel", "everturn-wire"]),
    // For tests only: what ships must not use it, so it is in no other list.
    ("everturn-testkit", &["everturn-kernel", "everturn-wire"]),
    ("everturn-diagnosis", &["everturn-wire"]),
    ("everturn-provider", &["everturn-kernel", "everturn-wire", "everturn-diagnosis"]),
    // What stores implement: they know nothing else of the orchestrator.
    ("everturn-ports", &["everturn-kernel", "everturn-wire"]),
    ("everturn-orchestrator", &["everturn-kernel", "everturn-pacing", "everturn-ports", "everturn-wire"]),
    ("everturn-mcp", &["everturn-kernel", "everturn-orchestrator", "everturn-wire"]),
    // Rows, without SQL: what the SQL stores share.
    ("everturn-store-rows", &["everturn-ports", "everturn-wire"]),
    ("everturn-store-sqlite", &["everturn-ports", "everturn-store-rows", "everturn-wire"]),
    ("everturn-store-postgres", &["everturn-ports", "everturn-store-rows", "everturn-wire"]),
    ("everturn-store-nats", &["everturn-ports", "everturn-wire"]),
    // Pure translation: the transport starts the turn.
    ("everturn-dialect", &["everturn-wire"]),
    // A transport relays and does not decide, so it never sees the kernel.
    ("everturn-transport-ws", &["everturn-orchestrator", "everturn-wire"]),
    (
        "everturn-transport-http",
        &["everturn-dialect", "everturn-orchestrator", "everturn-transport-ws", "everturn-wire"],
    ),
    // A part of the binary that does not know the configuration. It explains failures, so it knows who diagnoses them.
    (
        "everturn-terminal",
        &[
            "everturn-diagnosis",
            "everturn-kernel",
            "everturn-orchestrator",
            "everturn-provider",
            "everturn-store-sqlite",
            "everturn-wire",
        ],
    ),
    // An observer sees turns, but no provider.
    ("everturn-telemetry", &["everturn-kernel", "everturn-orchestrator", "everturn-wire"]),
    (
        "everturn",
        &[
            "everturn-kernel",
            "everturn-mcp",
            "everturn-orchestrator",
            "everturn-provider",
            "everturn-store-nats",
            "everturn-store-postgres",
            "everturn-store-sqlite",
            "everturn-telemetry",
            "everturn-terminal",
            "everturn-transport-http",
            "everturn-transport-ws",
            "everturn-wire",
        ],
    ),
    (
        "everturn-sim",
        &[
            "everturn-kernel",
            "everturn-orchestrator",
            "everturn-pacing",
            "everturn-provider",
            "everturn-wire",
        ],
    ),
    // It compiles one file of the orchestrator, by path.
    ("everturn-model", &["everturn-kernel", "everturn-wire"]),
    // Like an embedder, it uses the kernel through the orchestrator.
    (
        "everturn-examples",
        &["everturn-orchestrator", "everturn-transport-http", "everturn-transport-ws", "everturn-wire"],
    ),
    ("xtask", &["everturn-wire"]),
];

/// It measures everything, so it may use everything.
const BENCH: &str = "everturn-bench";

/// All external dependencies of the kernel.
const KERNEL: [&str; 4] = ["async-trait", "futures-core", "futures-util", "serde"];

/// Crates without a runtime, network, disk or randomness among their dependencies.
const PURE: [&str; 5] =
    ["everturn-wire", "everturn-kernel", "everturn-pacing", "everturn-diagnosis", "everturn-dialect"];
const IMPURE: [&str; 9] =
    ["tokio", "mio", "socket2", "hyper", "reqwest", "axum", "rusqlite", "rand", "getrandom"];

/// Crates that would retry, wait or decode in our place, or add a second TLS implementation.
const BANNED: [&str; 12] = [
    "again",
    "async-openai",
    "backoff",
    "backon",
    "eventsource-stream",
    "genai",
    "native-tls",
    "openssl-sys",
    "reqwest-middleware",
    "reqwest-retry",
    "tokio-retry",
    "tokio-retry2",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A dependency that is not only for tests.
struct Dependency {
    name: String,
    ours: bool,
}

/// Returns the workspace packages and their dependencies.
fn workspace() -> BTreeMap<String, Vec<Dependency>> {
    let text = cargo(&["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&text).unwrap();
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| Dependency {
                name: dependency["name"].as_str().unwrap().to_owned(),
                ours: dependency["path"].is_string(),
            })
            .collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|package| (package["name"].as_str().unwrap().to_owned(), dependencies(package))).collect()
}

/// Returns the names and licences of everything needed to build these packages.
fn tree(selection: &[&str]) -> BTreeMap<String, String> {
    let format = ["--offline", "--locked", "--prefix=none", "--format={p}\t{l}"];
    cargo(&[&["tree"], selection, &format].concat())
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(package, licence)| {
            (package.split(' ').next().unwrap().to_owned(), licence.replace(" (*)", ""))
        })
        .collect()
}

#[test]
fn a_package_uses_only_what_is_below_it() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let workspace = workspace();
    assert!(workspace.len() > 8);
    for (package, dependencies) in workspace.iter().filter(|(package, _)| *package != BENCH) {
        let allowed =
            allowed.get(package.as_str()).unwrap_or_else(|| panic!("{package} is in no layer: add it"));
        for dependency in dependencies.iter().filter(|dependency| dependency.ours) {
            assert!(
                allowed.contains(&dependency.name.as_str()),
                "{package} must not use {}",
                dependency.name
            );
        }
    }
}

#[test]
fn the_kernel_has_four_external_dependencies() {
    let workspace = workspace();
    let outside = workspace["everturn-kernel"].iter().filter(|dependency| !dependency.ours);
    assert_eq!(outside.map(|dependency| dependency.name.as_str()).collect::<BTreeSet<_>>(), KERNEL.into());
}

#[test]
fn the_pure_crates_have_no_standard_library() {
    for library in ["kernel/src/lib.rs", "pacing/src/lib.rs", "wire/src/lib.rs"] {
        let text = fs::read_to_string(root().join(library)).unwrap();
        assert!(text.lines().any(|line| line == "#![no_std]"), "{library}");
    }
}

#[test]
fn the_dependencies_of_pure_packages_do_no_io() {
    for package in PURE {
        let tree = tree(&["-p", package, "--edges=normal"]);
        assert!(tree.contains_key("serde"), "{package}: {tree:?}");
        for impure in IMPURE {
            assert!(!tree.contains_key(impure), "{package} brings {impure}");
        }
    }
}

/// What only servers with MCP tools, a database, a cluster or a collector need.
const FEATURES: [&str; 7] = [
    "everturn-store-nats",
    "everturn-store-postgres",
    "everturn-telemetry",
    "async-nats",
    "tokio-postgres",
    "opentelemetry",
    "rmcp",
];

#[test]
fn the_default_build_lacks_what_the_quick_start_does_not_need() {
    let default = tree(&["-p", "everturn", "--edges=normal,build"]);
    let full = tree(&["-p", "everturn", "--edges=normal,build", "--features=full"]);
    for package in FEATURES {
        assert!(!default.contains_key(package), "the default build of the server brings {package}");
        assert!(full.contains_key(package), "the full build of the server lacks {package}");
    }
}

#[test]
fn dependencies_come_from_the_registry_and_none_is_banned() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let registry = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    for source in lock.lines().filter(|line| line.starts_with("source = ")) {
        assert_eq!(source, registry);
    }
    for banned in BANNED {
        assert!(!lock.contains(&format!("name = \"{banned}\"\n")), "{banned} is banned");
    }
}

/// Licences that require only attribution.
const LICENCES: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether every required part has an acceptable alternative.
fn is_permissive(licence: &str) -> bool {
    let spelled = licence.replace(['(', ')'], "").replace(" / ", "/").replace('/', " OR ");
    spelled.split(" AND ").all(|part| part.split(" OR ").any(|choice| LICENCES.contains(&choice)))
}

#[test]
fn every_dependency_has_a_permissive_licence() {
    let tree = tree(&["--workspace", "--all-features", "--edges=normal,build,dev"]);
    assert!(tree.len() > 50);
    let others: BTreeMap<_, _> = tree.iter().filter(|(_, licence)| !is_permissive(licence)).collect();
    assert!(others.is_empty(), "look at these licences: {others:?}");
}

#[test]
fn licences_are_read_part_by_part() {
    assert!(is_permissive("(MIT OR GPL-3.0) AND Unicode-3.0"));
    assert!(is_permissive("Apache-2.0 / MIT"));
    assert!(!is_permissive("MIT AND MPL-2.0"));
    assert!(!is_permissive(""));
}
