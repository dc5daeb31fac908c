//! Completions, manual pages, the health check.

use std::{fs, process::Command};

use everturn_sim::ClosedPort;
use tempfile::tempdir;

use crate::home::{Home, stderr, stdout};

fn everturn(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_everturn")).args(arguments).output().unwrap()
}

#[test]
fn a_shell_completes_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let printed = everturn(&["completions", shell]);
        assert!(printed.status.success(), "{shell}");
        let script = String::from_utf8(printed.stdout).unwrap();
        for word in ["serve", "chat", "conversations", "explain", "listen"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    // The completions that bash offers after `everturn conv`.
    let asks = r#"
        source /dev/stdin
        COMP_WORDS=(everturn conv) COMP_CWORD=1
        _everturn everturn conv everturn
        echo "${COMPREPLY[@]}"
    "#;
    let mut bash = Command::new("bash");
    bash.args(["-c", asks]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut bash = bash.spawn().unwrap();
    std::io::Write::write_all(&mut bash.stdin.take().unwrap(), &everturn(&["completions", "bash"]).stdout)
        .unwrap();
    let offered = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(offered.stdout).unwrap().trim(), "conversations");
    let refused = everturn(&["completions", "cmd"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let directory = tempdir().unwrap();
    let place = directory.path().join("man1");
    assert!(everturn(&["man", place.to_str().unwrap()]).status.success());
    for name in ["everturn", "everturn-serve", "everturn-chat", "everturn-conversations", "everturn-explain"]
    {
        let page = fs::read_to_string(place.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{name}: {}", &page[..200]);
    }
    for (command, options) in [
        ("chat", ["continue", "conversation", "data", "ephemeral", "json", "raw"]),
        ("run", ["continue", "conversation", "data", "ephemeral", "json", "report"]),
    ] {
        let page = fs::read_to_string(place.join(format!("everturn-{command}.1"))).unwrap();
        let script = String::from_utf8(everturn(&["completions", "bash"]).stdout).unwrap();
        for option in options {
            assert!(page.contains(&format!("\\-\\-{option}")), "{command} {option}");
            assert!(script.contains(&format!("--{}", option.replace('\\', ""))), "{option}");
        }
    }
    let page = fs::read_to_string(place.join("everturn.1")).unwrap();
    assert!(page.contains("OPENAI_API_KEY"), "the environment is described");
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = everturn(&["man", file.to_str().unwrap()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("cannot write manual pages to") && refused.status.code() == Some(1), "{said}");
}

#[tokio::test]
async fn health_is_an_exit_code() {
    let home = Home::with("[server]\ntoken = \"of-server-s3cret\"");
    let (server, closed) = (home.serve().await, ClosedPort::reserve().unwrap());
    let well = home.run(&["health", "--server", &server.url]).await;
    assert_eq!((well.status.code(), stdout(&well).trim()), (Some(0), "ok"), "{}", stderr(&well));
    let gone = home.run(&["health", "--server", &closed.base_url()]).await;
    assert_eq!((gone.status.code(), stdout(&gone).as_str()), (Some(1), ""));
}

#[tokio::test]
async fn health_asks_where_serve_would_listen() {
    let home = Home::empty();
    let server = home.serve().await;
    let (_, port) = server.url.rsplit_once(':').unwrap();
    let closed = ClosedPort::reserve().unwrap();
    let closed = closed.base_url().trim_start_matches("http://").to_owned();
    let file = |listen: &str| Home::with(&format!("[server]\nlisten = \"{listen}\""));
    let here = format!("127.0.0.1:{port}");
    // What the file says, what the environment says, and whether the server is found.
    let cases = [
        (file(&here), None, true),
        (file(&closed), None, false),
        (file(&closed), Some(here.clone()), true),
        (file(&here), Some(closed.clone()), false),
        (Home::empty(), Some(port.to_owned()), true),
        (Home::empty(), Some(format!("localhost:{port}")), true),
        (Home::empty(), Some(format!("0.0.0.0:{port}")), true),
        // The address of the environment needs no file.
        (Home::with("[server"), Some(here.clone()), true),
    ];
    for (home, variable, is_found) in cases {
        let mut command = home.command(&["health"]);
        command.envs(variable.iter().map(|listen| ("EVERTURN_LISTEN", listen)));
        let output = command.output().await.unwrap();
        assert_eq!(output.status.success(), is_found, "{variable:?}: {}", stderr(&output));
        let output = command.args(["--server", &server.url]).output().await.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let named = file(&here);
    let config = named.path().join("everturn/config.toml");
    let output = home.run(&["health", "--config", config.to_str().unwrap()]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let unknown = file("127.0.0.1:0").run(&["health"]).await;
    assert!(stderr(&unknown).contains("any free port (0): name it with --server"), "{}", stderr(&unknown));
}
