//! What the default build says about what it lacks.
#![cfg(not(any(feature = "mcp", feature = "nats", feature = "otlp", feature = "postgres")))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command};

const CLUSTER: &str = "[cluster]\nservers = [\"nats://127.0.0.1:1\"]\n";
const POSTGRES: &str = "[postgres]\nurl = \"postgres://ev@127.0.0.1:1/ev\"\n";
const MCP: &str = "[[mcp]]\nname = \"files\"\ncommand = \"true\"\n";

/// Returns the command with this configuration file, and nothing else of this machine.
fn everturn(directory: &Path, config: &str, words: &[&str]) -> Command {
    let file = directory.join("config.toml");
    fs::write(&file, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_everturn"));
    command.args(words).env_clear().env("HOME", directory).env("EVERTURN_CONFIG", file);
    command
}

#[test]
fn a_missing_feature_is_named_with_the_way_to_get_it() {
    let directory = tempfile::tempdir().unwrap();
    for (config, words, what, feature) in [
        (CLUSTER, &["serve"][..], "NATS", "nats"),
        ("", &["serve", "--cluster", "nats://127.0.0.1:1"], "NATS", "nats"),
        (CLUSTER, &["conversations", "list"], "NATS", "nats"),
        (POSTGRES, &["serve"], "Postgres", "postgres"),
        ("", &["serve", "--postgres", "postgres://ev@127.0.0.1:1/ev"], "Postgres", "postgres"),
        (POSTGRES, &["conversations", "list"], "Postgres", "postgres"),
        ("", &["mcp", "list"], "MCP", "mcp"),
        (MCP, &["serve", "--memory", "--listen", "127.0.0.1:0"], "MCP", "mcp"),
    ] {
        let output = everturn(directory.path(), config, words).output().unwrap();
        let expected = format!(
            "everturn: this build has no {what} support: build with `--features {feature}`, or use a released binary\n"
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said), (Some(1), expected), "{words:?}");
    }
}
