//! Programs run by `everturn with`.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use everturn_sim::{Loopback, Reply};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    join,
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

/// Returns how many files are in a directory and those below it.
fn files(directory: &Path) -> usize {
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { 1 };
    fs::read_dir(directory).unwrap().map(|entry| below(entry.unwrap().path())).sum()
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
    assert_eq!(files(home.path()), 0, "no file is left in its home");
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
async fn another_terminal_sees_what_a_program_waits_for_and_ends_the_wait() {
    let long = overloaded().header("retry-after", "600");
    let provider = Loopback::start([long, answered()]).await;
    let home = Home::empty();
    let listed = home.place(".local/share/everturn/with");
    let mut command = home.command(&python(CLIENT));
    command.env("ANTHROPIC_BASE_URL", provider.base_url());
    let control = async {
        let list = loop {
            let list = stdout(&home.run(&["calls"]).await);
            if list.contains("waits") {
                break list;
            }
        };
        // Of a server that was killed.
        let left = listed.join("9");
        fs::write(&left, "").unwrap();
        assert!(
            list.contains("overloaded") && list.contains("Page of an `everturn with`: http://127.0.0.1:"),
            "{list}"
        );
        let line = stdout(&home.run(&["status", "--line"]).await);
        assert!(line.starts_with("everturn: anthropic/claude-x#") && line.contains("waits 10 min"), "{line}");
        let retried = home.run(&["calls", "retry"]).await;
        assert!(stdout(&retried).ends_with("is tried again.\n"), "{}", stderr(&retried));
        assert!(!left.exists());
    };
    let (output, ()) = timeout(DEADLINE, async { join!(command.output(), control) }).await.unwrap();
    let output = output.unwrap();
    assert!(stdout(&output).starts_with("200 req-1"), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(files(home.path()), 0, "no file is left in its home");
}

#[tokio::test]
async fn a_server_that_does_not_listen_is_told_before_the_program_starts() {
    let home = Home::empty();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output =
        home.run(&["with", "--server", &format!("http://127.0.0.1:{port}"), "--", "echo", "started"]).await;
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let told = stderr(&output);
    assert!(
        told.contains("cannot reach the server at http://127.0.0.1") && told.contains("everturn serve"),
        "{told}"
    );
}

/// Puts a program of this name into a directory, and returns the path that finds it first.
fn install(home: &Home, name: &str, script: &str) -> String {
    let bin = home.place("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join(name), format!("#!/usr/bin/env python3\n{script}")).unwrap();
    fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// Calls a provider by its address, as a program would, and prints the answer.
const CALL: &str = r#"
import json, os, re, sys, urllib.request
def call(url, path):
    body = b'{ "model": "openrouter/auto",  "messages": [] }'
    headers = {"content-type": "application/json", "authorization": "Bearer sk-own-12345678"}
    with urllib.request.urlopen(urllib.request.Request(url + path, body, headers)) as answer:
        print(answer.status, answer.read().decode())
"#;

/// What the provider got: path, key and body.
fn got(provider: &Loopback) -> Vec<(String, String, String)> {
    let got = provider.requests().into_iter().map(|request| {
        let key = request.header("authorization").unwrap_or_default().to_owned();
        (request.path.clone(), key, String::from_utf8_lossy(&request.body).into_owned())
    });
    got.collect()
}

fn sent(path: &str) -> (String, String, String) {
    let body = r#"{ "model": "openrouter/auto",  "messages": [] }"#;
    (path.to_owned(), "Bearer sk-own-12345678".to_owned(), body.to_owned())
}

#[tokio::test]
async fn opencode_calls_the_providers_of_its_users_files_through_the_server() {
    let [nobody, global, local, gateway] = [
        Loopback::start([]).await,
        Loopback::start([answered()]).await,
        Loopback::start([answered()]).await,
        Loopback::start([answered()]).await,
    ];
    let home = Home::empty();
    let script = r#"
providers = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["provider"]
for name in ["openrouter", "local", "anthropic"]:
    call(providers[name]["options"]["baseURL"], "/chat/completions")
print(sorted(providers))
"#;
    let path = install(&home, "opencode", &format!("{CALL}{script}"));
    let project = home.place("project/inner");
    let files = [
        (
            "opencode/opencode.json",
            json!({ "provider": {
            "openrouter": { "api": format!("{}/api/v1", global.base_url()), "options": { "apiKey": "k" } },
            "local": { "options": { "baseURL": nobody.base_url() } },
        } })
            .to_string(),
        ),
        ("opencode.json", "{ broken, but above the project".to_owned()),
        ("project/.git/HEAD", String::new()),
        (
            "project/opencode.json",
            json!({ "provider": { "local": { "options": { "baseURL": nobody.base_url() } } } }).to_string(),
        ),
        (
            "project/opencode.jsonc",
            format!(
                "{{ // of the project\n\"provider\": {{ \"local\": {{ \"options\": {{ \"baseURL\": \"{}/v1/\", }} }} }} }}",
                local.base_url()
            ),
        ),
        (
            "project/inner/.opencode/opencode.json",
            json!({ "provider": {
            "anthropic": { "options": { "baseURL": gateway.base_url() } },
            "variable": { "options": { "baseURL": "http://${HOST}/v1" } },
            "wrong": { "options": { "baseURL": "ftp://127.0.0.1" } },
        } })
            .to_string(),
        ),
        ("project/inner/opencode.json", "{ \"provider\": ".to_owned()),
    ];
    for (name, text) in &files {
        fs::create_dir_all(home.place(name).parent().unwrap()).unwrap();
        fs::write(home.place(name), text).unwrap();
    }
    let mut command = home.command(&["with", "opencode"]);
    command.current_dir(&project).env("PATH", path);
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    let answer = "200 {\"type\":\"message\",\"content\":[]}\n".repeat(3);
    let names = "['anthropic', 'google', 'local', 'openai', 'openrouter']\n";
    assert_eq!(stdout(&output), answer + names, "{}", stderr(&output));
    assert_eq!(got(&global), [sent("/api/v1/chat/completions")]);
    assert_eq!(got(&local), [sent("/v1/chat/completions")]);
    assert_eq!(got(&gateway), [sent("/chat/completions")]);
    assert_eq!(nobody.requests().len(), 0);
    let said = stderr(&output);
    let [broken, variable, wrong] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(
        broken.starts_with("everturn: cannot read ") && broken.contains("project/inner/opencode.json"),
        "{broken}"
    );
    assert!(
        variable.contains(
            "provider \"variable\" is called directly: its name has `?` or `%`, or its address has variables"
        ),
        "{variable}"
    );
    assert!(wrong.contains("provider \"wrong\" is called directly") && wrong.contains("http://"), "{wrong}");
    for (name, text) in &files {
        assert_eq!(fs::read_to_string(home.place(name)).unwrap(), *text, "it was not changed");
    }
}

#[tokio::test]
async fn pi_calls_the_providers_of_its_users_file_through_the_server() {
    let [own, many] = [Loopback::start([answered(), answered()]).await, Loopback::start([]).await];
    let home = Home::empty();
    let script = r#"
extension = open(sys.argv[sys.argv.index("--extension") + 1]).read()
providers = re.findall(r'pi.registerProvider\("(.*)", \{ baseUrl: "(.*)" \}\);', extension)
for name in ["anthropic", "own"]:
    call(dict(providers)[name], "/v1/messages")
print([name for name, _ in providers])
"#;
    let path = install(&home, "pi", &format!("{CALL}{script}"));
    fs::create_dir_all(home.place(".pi/agent")).unwrap();
    let models = json!({ "providers": {
        "anthropic": { "baseUrl": format!("{}/gateway", own.base_url()) },
        "many": { "baseUrl": many.base_url(), "models": [{ "id": "a", "baseUrl": many.base_url() }] },
        "none": { "apiKey": "k" },
        "own": { "baseUrl": own.base_url(), "api": "anthropic-messages", "apiKey": "k", "models": [{ "id": "m" }] },
    } });
    fs::write(home.place(".pi/agent/models.json"), format!("// mine\n{models}")).unwrap();
    let mut command = home.command(&["with", "pi"]);
    command.env("PATH", path);
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    let answer = "200 {\"type\":\"message\",\"content\":[]}\n".repeat(2);
    let names = "['anthropic', 'openai', 'google', 'anthropic', 'own']\n";
    assert_eq!(stdout(&output), answer + names, "{}", stderr(&output));
    assert_eq!(got(&own), [sent("/gateway/v1/messages"), sent("/v1/messages")]);
    let said =
        "everturn: pi's provider \"many\" is called directly: its models have addresses of their own\n";
    assert_eq!(stderr(&output), said);
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
async fn a_program_that_stops_itself_stops_everturn_until_the_shell_continues_it() {
    let home = Home::empty();
    let script = "import os, signal\nprint('parent', os.getppid(), 'stops', flush=True)\n\
                  os.kill(os.getpid(), signal.SIGSTOP)\nprint('back')";
    let mut terminal = Terminal::new(&home, &python(script));
    terminal.until("stops").await;
    let shown = terminal.shown();
    let id = shown.split_once("parent ").unwrap().1.split_once(' ').unwrap().0.to_owned();
    let is_stopped =
        || fs::read_to_string(format!("/proc/{id}/stat")).unwrap().rsplit_once(") ").unwrap().1[..1] == *"T";
    let stopped = async {
        while !is_stopped() {
            yield_now().await;
        }
    };
    timeout(DEADLINE, stopped).await.expect("it stops with its program");
    assert!(tokio::process::Command::new("kill").args(["-CONT", &id]).status().await.unwrap().success());
    terminal.until("back").await;
    assert_eq!(terminal.end().await.code(), Some(0));
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
