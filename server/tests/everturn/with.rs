//! Programs run by `everturn with`.

use std::{process::Stdio, time::Duration};

use everturn_sim::{Loopback, Reply};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Child,
    task::yield_now,
    time::timeout,
};

use crate::{
    home::{DEADLINE, Home, SHORT, stderr, stdout},
    terminal::{CTRL_C, Terminal},
};

/// Calls a model's API as its vendor's client would, and prints the answer.
const CLIENT: &str = r#"
import os, sys, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true"
body = b'{ "model" : "claude-x",  "max_tokens": 5, "messages": [], "own": {"z": 1, "a": 2} }'
headers = {"content-type": "application/json", "x-api-key": "sk-client-12345678", "anthropic-version": "2023-06-01"}
try:
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        print(answer.status, answer.headers["request-id"], answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
sys.exit(7)
"#;

fn answered() -> Reply {
    Reply::json(200, &json!({ "type": "message", "content": [] })).header("request-id", "req-1")
}

fn overloaded() -> Reply {
    Reply::json(
        529,
        &json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
    )
}

/// Returns the program's words after `everturn`.
fn python(script: &str) -> [&str; 5] {
    ["with", "--", "python3", "-c", script]
}

#[tokio::test]
async fn a_program_calls_its_provider_through_a_server_of_its_own() {
    let provider = Loopback::start([answered()]).await;
    let home = Home::empty();
    let mut command = home.command(&python(CLIENT));
    command.env("ANTHROPIC_BASE_URL", provider.base_url());
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    assert_eq!(
        stdout(&output).trim(),
        "200 req-1 {\"type\":\"message\",\"content\":[]}",
        "{}",
        stderr(&output)
    );
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(7), ""));
    let requests = provider.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("x-api-key"), Some("sk-client-12345678"));
    assert!(
        String::from_utf8_lossy(&requests[0].body).contains(r#"{ "model" : "claude-x",  "max_tokens": 5"#)
    );
    let left = std::fs::read_dir(home.path()).unwrap().count();
    assert_eq!(left, 0, "nothing is left in its home");
}

#[tokio::test]
async fn a_program_joins_a_running_server_and_sits_through_its_waits() {
    let provider = Loopback::start([overloaded(), overloaded(), answered()]).await;
    let home = Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{SHORT}\n[[provider]]\nname = \"sim\"\nkind = \"anthropic\"\n\
         base_url = \"{}\"\ncredential = \"client\"\nmodels = [\"claude-a\"]\n",
        provider.base_url()
    ));
    let server = home.serve().await;
    let words = [&["with", "--server", &server.url], &python(CLIENT)[1..]].concat();
    let output = home.run(&words).await;
    assert!(stdout(&output).starts_with("200 req-1"), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((output.status.code(), provider.requests().len()), (Some(7), 3));
}

#[tokio::test]
async fn the_exit_code_is_the_programs() {
    let home = Home::empty();
    for (words, code) in [
        (&["with", "--", "sh", "-c", "exit 3"][..], 3),
        (&["with", "sh", "-c", "kill -TERM $$"], 143),
        (&["with", "no-such-program"], 127),
        (&["with", "/"], 126),
        (&["with"], 2),
    ] {
        let output = home.run(words).await;
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stderr(&output));
    }
}

/// Ends with 9 when asked to end. Says its process id first.
const ASKED: &str = "import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
signal.signal(signal.SIGINT, lambda *_: sys.exit(8))
print(os.getpid(), flush=True)
while True: signal.pause()";

/// Starts it, and returns it with the program's process id.
async fn asked(home: &Home) -> (Child, String) {
    let mut child = home.command(&python(ASKED)).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let id = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
    (child, id)
}

async fn signal(child: &Child, name: &str) {
    let id = child.id().unwrap().to_string();
    assert!(tokio::process::Command::new("kill").args([name, &id]).status().await.unwrap().success());
}

#[tokio::test]
async fn signals_are_handed_on() {
    let home = Home::empty();
    for (name, code) in [("-TERM", 9), ("-INT", 8)] {
        let (mut child, _) = asked(&home).await;
        signal(&child, name).await;
        let status = timeout(DEADLINE, child.wait()).await.expect("it ends with its program").unwrap();
        assert_eq!(status.code(), Some(code), "{name}");
    }
}

#[tokio::test]
async fn a_program_ends_with_an_everturn_that_is_killed() {
    let home = Home::empty();
    let (mut child, id) = asked(&home).await;
    child.kill().await.unwrap();
    let gone = async {
        while std::path::Path::new(&format!("/proc/{id}/cmdline")).exists()
            && std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|words| !words.is_empty())
        {
            yield_now().await;
        }
    };
    timeout(DEADLINE + Duration::from_secs(1), gone).await.expect("it ends soon");
}

#[tokio::test]
async fn a_program_has_the_terminal_and_its_ctrl_c() {
    let home = Home::empty();
    // A shell may have started the tests with the signal ignored. It is awaited, because a read that is about to block would
    // miss it.
    let script = "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n\
                  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n\
                  print('size', os.get_terminal_size(0).columns, sys.stdin.isatty(), 'name?', flush=True)\n\
                  signal.sigwait([signal.SIGINT])\nprint('left')\nsys.exit(5)";
    let mut terminal = Terminal::new(&home, &python(script));
    terminal.until("size 100 True").await;
    terminal.until("name?").await;
    terminal.press(CTRL_C).await;
    terminal.until("left").await;
    assert_eq!(terminal.end().await.code(), Some(5));
}
