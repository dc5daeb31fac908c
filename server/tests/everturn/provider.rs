//! Providers without a configuration file: `everturn provider`, the API, and the lists of models.

use std::{
    fs,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use everturn_sim::{Loopback, Reply, Request, chat, fault};
use hyper::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

use crate::{
    client::{get, ndjson, post, send},
    home::{DEADLINE, Home, LONG, Server, stderr, stdout},
    terminal::Terminal,
};

const KEY: &str = "sk-live-0123456789abcdefghij-WXYZ";

/// Answers like a vendor: a list, and answers to those who have the key.
fn vendor(request: &Request) -> Reply {
    let has_key = request.header("authorization") == Some(&format!("Bearer {KEY}"));
    match request.path.as_str() {
        _ if !has_key => {
            let said = request.header("authorization").unwrap_or_default();
            Reply::json(
                401,
                &json!({ "error": { "message": format!("Incorrect API key provided: {said}") } }),
            )
        }
        "/v1/models" => Reply::json(
            200,
            &json!({ "data": [
            { "id": "old", "created": 1 }, { "id": "new", "created": 2 }, { "id": "text-embedding-1", "created": 3 },
        ] }),
        ),
        _ => chat::text(["Hel", "lo."]).reply(),
    }
}

async fn add(home: &Home, provider: &Loopback, more: &[&str], key: &str) -> std::process::Output {
    let url = format!("{}/v1", provider.base_url());
    let words = ["provider", "add", "openai-compatible", "--name", "mine", "--base-url", &url];
    let mut child = home.command(&[&words, more].concat()).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{key}\n").as_bytes()).await.unwrap();
    timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap()
}

fn new(provider: &Loopback, key: &str) -> Value {
    let url = format!("{}/v1", provider.base_url());
    json!({ "vendor": "openai-compatible", "name": "mine", "baseUrl": url, "key": key })
}

async fn models(server: &Server) -> Value {
    get(server, "/models").await.json().await["models"].take()
}

/// Waits until the server offers these models.
async fn until(server: &Server, expected: &Value) {
    let offered = async { while models(server).await != *expected {} };
    timeout(DEADLINE, offered).await.unwrap_or_else(|_| panic!("{expected}"));
}

fn added_file(home: &Home) -> std::path::PathBuf {
    home.journal().with_file_name("everturn.db.providers.toml")
}

#[tokio::test]
async fn a_key_is_all_that_it_takes_in_the_terminal() {
    let provider = Loopback::with(vendor).await;
    let home = Home::empty();
    let output = add(&home, &provider, &[], KEY).await;
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said} {}", stderr(&output));
    for expected in
        ["mine/new answered.", "Models: mine/new, mine/old\n", "everturn chat --model mine/new hello"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    use std::os::unix::fs::PermissionsExt as _;
    let file = added_file(&home);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let answer = home.run(&["run", "--ephemeral", "hi"]).await;
    assert_eq!(stdout(&answer), "Hello.\n", "{}", stderr(&answer));
    let list = home.run(&["provider", "list"]).await;
    assert!(stdout(&list).contains("mine  openai-chat  ...WXYZ  added"), "{}", stdout(&list));
    let removed = home.run(&["provider", "remove", "mine"]).await;
    assert_eq!(stdout(&removed), "Removed mine and its key.\n");
    assert!(!fs::read_to_string(&file).unwrap().contains("WXYZ"));
    for output in [&output, &answer, &list, &removed] {
        assert!(!format!("{}{}", stdout(output), stderr(output)).contains(&KEY[..16]));
    }
}

#[tokio::test]
async fn a_server_that_starts_while_a_provider_is_away_offers_its_last_list() {
    let is_away = Arc::<AtomicBool>::default();
    let away = is_away.clone();
    let choose = move |request: &Request| match away.load(Ordering::Relaxed) {
        true => fault::bad_gateway(),
        false => vendor(request),
    };
    let provider = Loopback::with(choose).await;
    let home = Home::empty();
    assert!(add(&home, &provider, &[], KEY).await.status.success());
    let mut server = home.serve().await;
    until(&server, &json!(["mine/new", "mine/old"])).await;
    server.child.kill().await.unwrap();

    is_away.store(true, Ordering::Relaxed);
    let server = home.serve().await;
    assert_eq!(models(&server).await, json!(["mine/new", "mine/old"]));
    is_away.store(false, Ordering::Relaxed);
    let said = json!({ "conversationId": "c", "message": "hi", "model": "mine/old" });
    let events = ndjson(post(&server, "/chat", &said).await).await;
    assert_eq!(events.last().unwrap()["type"], "turn-sealed");
    // At another address it says nothing.
    let elsewhere = Loopback::start([fault::bad_gateway()]).await;
    assert!(add(&home, &elsewhere, &["--anyway"], KEY).await.status.success());
    until(&server, &json!([])).await;
    drop(server);
    assert_eq!(models(&home.serve().await).await, json!([]));
}

#[tokio::test]
async fn the_key_that_is_pasted_into_a_terminal_is_not_shown() {
    let provider = Loopback::with(vendor).await;
    let (home, url) = (Home::empty(), format!("{}/v1", provider.base_url()));
    let words = ["provider", "add", "openai-compatible", "--name", "mine", "--base-url", &url];
    let mut terminal = Terminal::new(&home, &words);
    terminal.until("press Enter if it needs none:").await;
    terminal.press(&format!("{KEY}\r")).await;
    terminal.until("Try it: everturn chat").await;
    assert!(!terminal.shown().contains(&KEY[..10]), "{}", terminal.shown());
    assert_eq!(terminal.end().await.code(), Some(0));
}

#[tokio::test]
async fn what_does_not_work_is_explained_and_not_kept() {
    for (reply, expected) in [
        (fault::unauthorized(), "mine rejected the key.\nCheck that the whole key was pasted"),
        (
            fault::insufficient_quota(),
            "mine accepted the key, but its account has no credit left.\nAdd credit",
        ),
        (Reply::reset(), "mine could not be reached.\n"),
        (
            Reply::json(404, &json!({})),
            "The list of models of mine could not be read.\nCheck the base URL, or name its models.",
        ),
        (Reply::json(200, &json!({ "data": [] })), "No conversation model of mine matches.\nName its models"),
    ] {
        let provider = Loopback::start([reply]).await;
        let home = Home::empty();
        let output = add(&home, &provider, &[], KEY).await;
        let said = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{said} {}", stderr(&output));
        assert!(said.contains(expected) && said.contains("--anyway"), "{expected}: {said}");
        assert!(!said.contains(KEY) && !added_file(&home).exists(), "{said}");
    }
}

#[tokio::test]
async fn a_list_that_needs_no_key_says_nothing_about_the_key() {
    for (reply, expected) in [
        (fault::unauthorized(), "mine rejected the key."),
        (fault::insufficient_quota(), "mine accepted the key, but its account has no credit left."),
    ] {
        let choose = move |request: &Request| match request.method.as_str() {
            "GET" => Reply::json(200, &json!({ "data": [{ "id": "one" }, { "id": "two" }] })),
            _ => reply.clone(),
        };
        let provider = Loopback::with(choose).await;
        let home = Home::empty();
        let output = add(&home, &provider, &[], KEY).await;
        let said = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected) && !added_file(&home).exists(), "{said}");
        assert_eq!(provider.counts().requests, 2, "another model would be refused, too");
        let kept = add(&home, &provider, &["--anyway"], KEY).await;
        assert!(kept.status.success() && added_file(&home).exists(), "{}", stdout(&kept));
    }
}

#[tokio::test]
async fn a_provider_without_a_list_takes_models_that_are_named() {
    let choose = |request: &Request| match request.method.as_str() {
        "GET" => Reply::json(404, &json!({ "error": "no list" })),
        _ => chat::text(["Hello."]).reply(),
    };
    let provider = Loopback::with(choose).await;
    let home = Home::empty();
    let output = add(&home, &provider, &["--model", "one", "--model", "x*"], KEY).await;
    let said = stdout(&output);
    assert!(output.status.success() && said.contains("mine/one answered."), "{said}");
    assert!(said.contains("The list of models of mine could not be read; it will be tried again."), "{said}");
    // A model that is not known is passed on.
    let answer = home.run(&["run", "--ephemeral", "--model", "mine/x-9", "hi"]).await;
    assert_eq!(stdout(&answer), "Hello.\n", "{}", stderr(&answer));
    assert_eq!(provider.requests().last().unwrap().json().unwrap()["model"], "x-9");
}

#[tokio::test]
async fn a_provider_is_there_without_a_restart_and_its_key_never_comes_back() {
    let provider = Loopback::with(vendor).await;
    let home = Home::empty();
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_LOG", "trace");
    let mut server = home.launch_piped(command).await;
    assert_eq!(models(&server).await, json!(["demo/flaky"]));
    assert_eq!(get(&server, "/tools").await.json().await["tools"][0]["name"], "roll_dice");
    let wrong = post(&server, "/providers", &new(&provider, "sk-wrong-0123456789abcdef")).await;
    assert_eq!(wrong.status, 422);
    let wrong = wrong.json().await;
    assert_eq!((&wrong["error"], &wrong["category"]), (&json!("mine rejected the key."), &json!("auth")));
    assert_eq!(models(&server).await, json!(["demo/flaky"]), "nothing was kept");

    let done = post(&server, "/providers", &new(&provider, KEY)).await;
    assert_eq!(done.status, 201);
    let done = done.text().await;
    assert!(done.contains("\"answered\":\"mine/new\"") && done.contains("\"keyEnd\":\"WXYZ\""), "{done}");
    assert_eq!(models(&server).await, json!(["mine/new", "mine/old"]));
    assert_eq!(get(&server, "/tools").await.json().await["tools"], json!([]), "real models have no dice");
    let events =
        ndjson(post(&server, "/chat", &json!({ "message": "hi", "conversationId": "c" })).await).await;
    assert!(events.iter().any(|event| event["type"] == "turn-sealed"), "{events:?}");
    // One that is removed while its key is in use fails its turns, and the demo is back.
    let mut told = format!("{done}{events:?}{wrong}");
    for path in [
        "/",
        "/page/providers.js",
        "/providers",
        "/models",
        "/targets",
        "/tools",
        "/metrics",
        "/conversations",
        "/conversations/c",
        "/conversations/c/export?format=json",
        "/conversations/c/attempts",
        "/openapi.json",
    ] {
        told.push_str(&get(&server, path).await.text().await);
    }
    let journal: Vec<u8> = everturn_files(&home).iter().flat_map(|path| fs::read(path).unwrap()).collect();
    told.push_str(&String::from_utf8_lossy(&journal));
    let gone = send(&server, Method::DELETE, "/providers/mine", &[], String::new()).await;
    assert_eq!(gone.status, 204);
    assert_eq!(models(&server).await, json!(["demo/flaky"]));
    let again = send(&server, Method::DELETE, "/providers/mine", &[], String::new()).await;
    assert_eq!(again.status, 404);
    server.terminate().await;
    let mut log = server.child.stderr.take().unwrap();
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut log, &mut text).await.unwrap();
    assert!(text.contains("TRACE"), "the log is complete");
    told.push_str(&text);
    for part in [KEY, &KEY[8..24], "sk-wrong-0123456789abcdef"] {
        assert!(
            !told.contains(part),
            "{}",
            told.split(part).next().unwrap().chars().rev().take(300).collect::<String>()
        );
    }
}

/// Returns the files of the journal.
fn everturn_files(home: &Home) -> Vec<std::path::PathBuf> {
    let directory = home.journal();
    let all = fs::read_dir(directory.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| !path.to_string_lossy().contains("providers")).collect()
}

#[tokio::test]
async fn what_another_process_adds_or_removes_is_noticed() {
    let provider = Loopback::with(vendor).await;
    let home = Home::empty();
    let server = home.serve().await;
    let output = add(&home, &provider, &[], KEY).await;
    assert!(output.status.success(), "{}", stdout(&output));
    until(&server, &json!(["mine/new", "mine/old"])).await;
    let second = home.run(&["run", "--ephemeral", "--model", "mine/old", "hi"]).await;
    assert_eq!(stdout(&second), "Hello.\n");
    assert!(home.run(&["provider", "remove", "mine"]).await.status.success());
    until(&server, &json!(["demo/flaky"])).await;
}

#[tokio::test]
async fn only_the_owner_may_see_and_change_providers() {
    let provider = Loopback::with(vendor).await;
    let home = Home::with(&format!(
        "[server]\nallowed_origins = [\"https://friend.example\"]\n[[provider]]\nname = \"mine\"\nbase_url = \"{}/v1\"\n\
         models = [\"m\"]\n",
        provider.base_url()
    ));
    let server = home.serve().await;
    let own = format!("http://{}", server.authority());
    let json = ("content-type", "application/json");
    for (headers, expected) in [
        (vec![], 200),
        (vec![("origin", own.as_str())], 200),
        (vec![("origin", "https://friend.example")], 403),
        (vec![("x-forwarded-for", "203.0.113.7")], 403),
    ] {
        let told = send(&server, Method::GET, "/providers", &headers, String::new()).await;
        assert_eq!(told.status, expected, "{headers:?}");
    }
    let body = new(&provider, KEY).to_string();
    let forwarded =
        send(&server, Method::POST, "/providers", &[json, ("via", "1.1 proxy")], body.clone()).await;
    assert_eq!(forwarded.status, 403);
    let taken = send(&server, Method::POST, "/providers", &[json], body.clone()).await;
    assert!(taken.text().await.contains("is in the configuration"));
    let kept = send(&server, Method::DELETE, "/providers/mine", &[], String::new()).await;
    assert_eq!(kept.status, 409);
    assert_eq!(models(&server).await, json!(["mine/m"]));

    let mut command = Home::empty().command(&["--listen", "127.0.0.1:0", "--memory"]);
    command.env("EVERTURN_TOKEN", "the-token");
    let server = Home::empty().launch(command).await.unwrap();
    for (headers, expected) in [
        (vec![json], 401),
        (vec![json, ("authorization", "Bearer other")], 401),
        (vec![json, ("authorization", "Bearer the-token"), ("x-forwarded-for", "203.0.113.7")], 201),
    ] {
        let added = send(&server, Method::POST, "/providers", &headers, body.clone()).await;
        assert_eq!(added.status, expected, "{headers:?}");
    }
}

#[tokio::test]
async fn models_are_discovered_with_a_filter() {
    let provider = Loopback::with(vendor).await;
    let config = |models: &str| {
        let url = provider.base_url();
        format!(
            "[retry]\n{LONG}\n[[provider]]\nname = \"mine\"\nbase_url = \"{url}/v1\"\napi_key = \"{KEY}\"\n{models}\n"
        )
    };
    for (line, expected) in [
        ("", json!(["mine/new", "mine/old"])),
        ("models = [\"ol*\"]", json!(["mine/old"])),
        ("models = [\"extra\", \"!old\"]", json!(["mine/extra", "mine/new"])),
    ] {
        let server = Home::with(&config(line)).serve().await;
        assert_eq!(models(&server).await, expected, "{line}");
        let unknown = post(&server, "/chat", &json!({ "message": "hi", "model": "mine/nonsense" })).await;
        assert_eq!(unknown.status, 400, "its list does not have it");
    }
    let before = provider.counts().requests;
    let server = Home::with(&config("models = [\"one\"]")).serve().await;
    assert_eq!(models(&server).await, json!(["mine/one"]));
    assert_eq!(provider.counts().requests, before, "the list is not read if all models are named");
}

#[tokio::test]
async fn a_first_start_offers_the_ways_in() {
    let greeting = Home::empty().serve().await.greeting("OPENAI_API_KEY").await.join("\n");
    for expected in ["paste a key on the page, or run: everturn provider add", "everturn with claude"] {
        assert!(greeting.contains(expected), "{greeting}");
    }
    let all = Home::empty().run(&["provider", "add"]).await;
    assert!(
        stdout(&all).contains("openrouter") && stdout(&all).contains("https://console.groq.com/keys"),
        "{}",
        stdout(&all)
    );
    let none = Home::empty().run(&["provider", "list"]).await;
    assert!(stdout(&none).contains("No provider is configured"));
}

#[tokio::test]
async fn an_added_provider_outlives_its_server_and_gives_way_to_the_configuration() {
    let provider = Loopback::with(vendor).await;
    let home = Home::empty();
    let server = home.serve().await;
    assert_eq!(post(&server, "/providers", &new(&provider, KEY)).await.status, 201);
    drop(server);
    let server = home.serve().await;
    until(&server, &json!(["mine/new", "mine/old"])).await;
    drop(server);
    let mut command: Command = home.command(&["provider", "list"]);
    let config = home.place("other.toml");
    fs::write(
        &config,
        format!("[[provider]]\nname = \"mine\"\nbase_url = \"{}\"\nmodels = [\"m\"]", provider.base_url()),
    )
    .unwrap();
    let list = command.args(["--config", config.to_str().unwrap()]).output().await.unwrap();
    let list = stdout(&list);
    assert!(list.contains("mine  openai-chat  -    configuration"), "{list}");
    assert!(
        list.contains("Off: provider \"mine\" was added, but the configuration has one of this name"),
        "{list}"
    );
}
