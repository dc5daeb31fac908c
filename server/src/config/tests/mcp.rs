//! MCP server settings.

use std::time::Duration;

use everturn_mcp::{Connection, Setting};

use super::*;

#[test]
fn a_server_is_a_command_or_an_address() {
    let case = Case::new(
        "[[mcp]]\nname = \"files\"\ncommand = \"npx\"\nargs = [\"-y\", \"files\"]\ncwd = \"/srv\"\n\
         trust_annotations = true\nidle_timeout_ms = 1000\ntotal_timeout_ms = 2000\nstart_timeout_ms = 3000\n\
         max_result_bytes = 4000\n[mcp.env]\nLOG = \"debug\"\nKEY = { env = \"FILES_KEY\" }\n\
         [[mcp]]\nname = \"web\"\nurl = \"https://host/mcp\"\nheaders = { Authorization = \"Bearer s3cret\" }\n",
    );
    let config = case.variable("FILES_KEY", " s3cret-key\n").config();
    let [files, web] = &config.mcp[..] else { panic!("{:?}", config.mcp) };
    let Connection::Command(command) = &files.connection else { panic!() };
    assert_eq!((command.program.as_str(), command.args.len()), ("npx", 2));
    assert_eq!(command.cwd.as_deref(), Some(Path::new("/srv")));
    assert_eq!(command.env["LOG"], Setting::Plain("debug".to_owned()));
    assert_eq!(command.env["KEY"], Setting::Secret("s3cret-key".to_owned()));
    assert!(files.trust_annotations && !web.trust_annotations);
    let timeouts = [files.timeouts.idle, files.timeouts.total, files.timeouts.start];
    assert_eq!(timeouts, [1, 2, 3].map(Duration::from_secs));
    assert_eq!(files.max_result, 4000);
    let Connection::Http(endpoint) = &web.connection else { panic!() };
    assert_eq!(endpoint.url, "https://host/mcp");
    assert_eq!(endpoint.headers["Authorization"], Setting::Secret("Bearer s3cret".to_owned()));
    assert_eq!(config.secret_files, [config.file.clone().unwrap()], "the header is a secret in it");
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn a_server_whose_secret_is_missing_is_off() {
    let case = Case::new(
        "[[mcp]]\nname = \"a\"\ncommand = \"x\"\nenv = { KEY = { env = \"NO_SUCH_KEY\" } }\n\
         [[mcp]]\nname = \"b\"\nurl = \"http://host\"\nheaders = { Authorization = { file = \"/no/such/file\" } }\n\
         [[mcp]]\nname = \"c\"\ncommand = \"x\"\n",
    );
    let config = case.config();
    assert_eq!(config.mcp.len(), 1);
    let expected = [
        "MCP server \"a\": `env.KEY` is missing: set the environment variable NO_SUCH_KEY",
        "MCP server \"b\": `headers.Authorization` is missing: cannot read the file /no/such/file: entity not found",
    ];
    assert_eq!(config.off, expected);
    assert_eq!(config.secret_files, [Path::new("/no/such/file")]);
}

#[test]
fn relative_paths_are_relative_to_the_file() {
    let case = Case::new(
        "[[mcp]]\nname = \"a\"\ncommand = \"x\"\ncwd = \"work\"\nenv = { KEY = { file = \"my.key\" } }\n",
    );
    let folder = case.home.path().join("everturn");
    fs::write(folder.join("my.key"), "s3cret").unwrap();
    let config = case.config();
    let Connection::Command(command) = &config.mcp[0].connection else { panic!() };
    assert_eq!(command.env["KEY"], Setting::Secret("s3cret".to_owned()));
    assert_eq!(command.cwd, Some(folder.join("work")));
    assert_eq!(config.secret_files, [folder.join("my.key")]);
}

#[test]
fn problems_are_named_with_their_line_and_without_secrets() {
    let both = "[[mcp]]\nname = \"a\"\ncommand = \"x\"\n";
    let cases = [
        ("[[mcp]]\nname = \"a\"\n", ":2: MCP server \"a\": it has neither a `command` to start nor a `url`"),
        (
            &format!("{both}url = \"http://h\"\n"),
            ":2: MCP server \"a\": it has a `command` and a `url`: keep one",
        ),
        (&format!("{both}{both}"), ":5: two MCP servers are named \"a\""),
        (&format!("{both}headers = {{ X = \"s3cret\" }}\n"), "`headers` are for a `url`"),
        ("[[mcp]]\nname = \"a\"\nurl = \"http://h\"\nargs = [\"x\"]\n", "are for a `command`"),
        (
            "[[mcp]]\nname = \"a__b\"\ncommand = \"x\"\n",
            ":2: MCP server \"a__b\": \"a__b\" cannot be the name",
        ),
        ("[[mcp]]\nname = \"a\"\nurl = \"ftp://s3cret\"\n", "its `url` must begin with http://"),
        (&format!("{both}idle_timeout_ms = 0\n"), "`idle_timeout_ms` must be at least 1"),
        (&format!("{both}retries = 1\n"), ":4: unknown field `retries`"),
        (
            &format!("{both}env = {{ A = {{ env = \"s3cret-in-the-wrong-place\" }} }}\n"),
            "does not look like a variable name",
        ),
        (
            &format!("{both}env = {{ A = 7 }}\n"),
            ":4: `env` must be a string, { env = \"NAME\" } or { file = \"PATH\" }",
        ),
        (&format!("{both}env = {{ A = {{ }} }}\n"), "write either env = \"NAME\" or file = \"PATH\""),
        ("[mcp]\nname = \"a\"\n", ":1: use double brackets, like [[provider]]"),
    ];
    for (file, expected) in cases {
        let problem = Case::new(file).problem();
        assert!(problem.contains(expected), "{file}: {problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
    }
}
