//! Tokens: made, used, revoked, rotated, expired; and never kept.

use everturn_sim::Gate;
use futures_util::future::join3;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::ChildStderr,
};

use super::*;

/// Waits until the server knows a token.
pub(super) async fn until_known(world: &World, token: &str) {
    until_status(world, token, 200).await;
}

pub(super) async fn until_status(world: &World, token: &str, status: u16) {
    let known = async {
        while world.ask(token, "GET", "/models", None).await.status != status {
            yield_now().await;
        }
    };
    timeout(DEADLINE, known).await.expect("the server notices in time");
}

#[tokio::test]
async fn a_running_server_notices_what_becomes_of_tokens() {
    let world = World::new().await.with_ann_talking().await;
    let mut socket = Socket::open_as(&world.server, "/ws", &world.ann).await;
    let stream = world.ask(&world.ann, "GET", "/conversations/plans/events", None).await;
    let rotated = world.home.run(&["token", "rotate", "ann"]).await;
    let ann = stdout(&rotated).trim().to_owned();
    until_status(&world, &ann, 200).await;
    assert_eq!(world.ask(&world.ann, "GET", "/models", None).await.status, 401);
    // What the former token had opened is closed.
    socket.close_code().await;
    assert!(stream.try_text().await.is_none(), "it is cut off");
    assert_eq!(world.json(&ann, "/conversations").await.as_array().unwrap().len(), 3);
    let revoked = world.home.run(&["token", "revoke", "ann"]).await;
    assert_eq!(stdout(&revoked), "The token of ann is no longer valid. Its conversations are kept.\n");
    until_status(&world, &ann, 401).await;
    assert_eq!(world.ask(&world.ben, "GET", "/models", None).await.status, 200);
    // A name stays with its conversations: nobody else gets it by mistake.
    let again = world.home.run(&["token", "new", "ann"]).await;
    assert!(
        !again.status.success() && stderr(&again).contains("everturn token rotate ann"),
        "{}",
        stderr(&again)
    );
    let list = stdout(&world.home.run(&["token", "list"]).await);
    assert!(list.contains("ann   chat,calls  revoked"), "{list}");
    // The file is gone, but nobody becomes the administrator.
    let file = world.home.journal().with_file_name("everturn.db.callers.toml");
    std::fs::remove_file(&file).unwrap();
    until_status(&world, &world.ben, 401).await;
    assert_eq!(send(&world.server, Method::GET, "/models", &[], String::new()).await.status, 401);
    assert_eq!(world.ask(ADMIN, "GET", "/models", None).await.status, 200);
}

#[tokio::test]
async fn who_may_no_longer_connect_is_told_at_once() {
    let mut world = World::new().await;
    let address = world.server.authority().to_owned();
    let words = ["run", "--server", &world.server.url, "--token", &world.ann, "wait for it"];
    let mut waits = world.home.command(&words).spawn().unwrap();
    let mut said = BufReader::new(waits.stderr.take().unwrap()).lines();
    let until = async |said: &mut Lines<BufReader<ChildStderr>>, wanted: &str| {
        let found = async { while !said.next_line().await.unwrap().unwrap().contains(wanted) {} };
        timeout(DEADLINE, found).await.expect("it is said");
    };
    until(&mut said, "Retrying (1/3)").await;
    world.server.child.kill().await.unwrap();
    until(&mut said, "Connection lost").await;
    world.home.run(&["token", "revoke", "ann"]).await;
    let mut command = world.home.command(&["--listen", &address]);
    command.env("EVERTURN_TOKEN", ADMIN);
    world.server = world.home.launch(command).await.expect("a greeting");
    // Instead of trying to reconnect for 20 minutes.
    until(&mut said, "did not accept the token").await;
    assert_eq!(timeout(DEADLINE, waits.wait()).await.expect("it ends").unwrap().code(), Some(1));
}

#[tokio::test]
async fn a_token_is_kept_nowhere() {
    let world = World::new().await.with_ann_talking().await;
    let file = world.home.journal().with_file_name("everturn.db.callers.toml");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let directory = world.home.journal().parent().unwrap().to_owned();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        for token in [&world.ann, &world.ben] {
            let found = bytes.windows(token.len()).any(|bytes| bytes == token.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn callers_of_the_configuration_need_no_file() {
    let provider = Loopback::with(model).await;
    let made = Home::empty().run(&["token", "new", "ann", "--print", "--scope", "chat"]).await;
    let (token, table) = (stdout(&made), stderr(&made));
    let table = table.split_once("[[caller]]").unwrap().1;
    let url = provider.base_url();
    let home = Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[[provider]]\nname = \"sim\"\nbase_url = \"{url}/v1\"\nmodels = [\"model\"]\n\
         [[caller]]\n{table}\n[[caller]]\nname = \"ci\"\ntoken_env = \"CI_TOKEN\"\n"
    ));
    let mut command = home.command(&["--listen", "127.0.0.1:0", "--memory"]);
    command.env("CI_TOKEN", "a-long-token-of-the-ci");
    let server = home.launch(command).await.expect("a greeting");
    for (token, status) in [(token.trim(), 200), ("a-long-token-of-the-ci", 200), ("another", 401)] {
        let bearer = format!("Bearer {token}");
        let answer =
            send(&server, Method::GET, "/models", &[("authorization", &bearer)], String::new()).await;
        assert_eq!(answer.status, status);
    }
    let lacking = home.run(&["--listen", "127.0.0.1:0", "--memory"]).await;
    assert!(stderr(&lacking).contains("CI_TOKEN"), "{}", stderr(&lacking));
}

#[tokio::test]
async fn in_a_cluster_callers_are_made_for_the_configuration() {
    let home = Home::empty();
    let run = async |words: &[&str]| {
        let mut command = home.command(words);
        command.env("EVERTURN_CLUSTER", "nats://127.0.0.1:1");
        command.output().await.unwrap()
    };
    for words in [&["token", "new", "ann"][..], &["token", "revoke", "ann"]] {
        let refused = run(words).await;
        assert!(!refused.status.success() && stderr(&refused).contains("everturn token new NAME --print"));
    }
    assert!(stdout(&run(&["token", "list"]).await).starts_with("There are no callers."));
    assert!(stderr(&run(&["token", "new", "ann", "--print"]).await).contains("[[caller]]"));
    assert!(!home.journal().with_file_name("everturn.db.callers.toml").exists());
}

#[tokio::test]
async fn what_was_there_before_belongs_to_the_administrator() {
    let provider = Loopback::with(model).await;
    let home = Home::with_provider(&provider, LONG);
    let server = home.serve().await;
    let body = json!({ "message": "The heron was here first", "conversationId": "plans" });
    let json = [("content-type", "application/json")];
    let first = send(&server, Method::POST, "/chat", &json, body.to_string()).await;
    assert_eq!(first.status, 200);
    ndjson(first).await;
    let ann = make_token(&home, &["ann"]).await;
    let boss = make_token(&home, &["boss", "--scope", "admin"]).await;
    let asked = async |token: &str, path: &str| {
        let bearer = format!("Bearer {token}");
        send(&server, Method::GET, path, &[("authorization", &bearer)], String::new()).await
    };
    // From now on, everybody needs a token.
    let known = async {
        while send(&server, Method::GET, "/conversations", &[], String::new()).await.status != 401 {
            yield_now().await;
        }
    };
    timeout(DEADLINE, known).await.unwrap();
    assert_eq!(asked(&ann, "/conversations").await.json().await, json!([]));
    assert_eq!(asked(&ann, "/conversations/plans").await.status, 404);
    assert!(asked(&boss, "/conversations/plans").await.text().await.contains("heron"));
}

#[tokio::test]
async fn all_conversations_of_a_former_caller_are_deleted_together() {
    let world = World::new().await.with_ann_talking().await;
    world.chat(&world.ben, &json!({ "message": "hello", "conversationId": "plans" })).await;
    world.chat(ADMIN, &json!({ "message": "hello", "conversationId": "anns" })).await;
    assert!(world.home.run(&["token", "revoke", "ann"]).await.status.success());
    let words =
        ["conversations", "delete", "--yes", "--server", &world.server.url, "--token", ADMIN, "--caller"];
    let gone = world.home.run(&[&words[..], &["an"]].concat()).await;
    assert_eq!(stderr(&gone), "There is no such conversation.\n");
    let gone = world.home.run(&[&words[..], &["ann"]].concat()).await;
    assert!(gone.status.success(), "{}", stderr(&gone));
    assert_eq!(stdout(&gone).lines().count(), 3, "with the one whose turn waits: {}", stdout(&gone));
    let left = world.json(ADMIN, "/conversations").await;
    let ids: Vec<_> = left.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["anns", "plans@ben"]);
}

/// Calls that pass through while the token is valid: one is answered piece by piece, one waits at its provider, and one waits for an
/// overloaded provider.
#[tokio::test]
async fn calls_that_pass_through_end_with_their_token() {
    let gate = Gate::new();
    let held = gate.clone();
    let provider = Loopback::with(move |request: &Request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        match body {
            body if body.contains("in pieces") => {
                chat::text(["Begun. ", "Never ended."]).reply().stall_before(2, &held)
            }
            body if body.contains("silent") => Reply::json(200, &json!({ "choices": [] })).hold(&held),
            _ => fault::overloaded(),
        }
    })
    .await;
    let home = Home::with(&configured(&provider, ""));
    let ann = make_token(&home, &["ann"]).await;
    let server = serve(&home, &[]).await;
    let bearer = format!("Bearer {ann}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let pass = async |text: &str, stream: bool| {
        let body = json!({ "model": "sim/model", "stream": stream, "messages": [{ "role": "user", "content": text }] });
        send(&server, Method::POST, "/v1/chat/completions", &headers, body.to_string()).await
    };
    let list = async || {
        let bearer = format!("Bearer {ADMIN}");
        let calls = send(&server, Method::GET, "/calls", &[("authorization", &bearer)], String::new()).await;
        calls.json().await["calls"].as_array().unwrap().clone()
    };
    let mut pieces = pass("in pieces", true).await;
    while !pieces.line().await.expect("it begins").contains("Begun") {}
    // Only once the silent call is there: an overloaded provider would be left alone for a while.
    let overloaded = async {
        provider.arrived(2).await;
        pass("overloaded", false).await
    };
    let revoked = async {
        provider.arrived(3).await;
        while !list().await.iter().any(|call| call["phase"] == "waiting") {}
        assert_eq!(list().await.len(), 3);
        assert!(home.run(&["token", "revoke", "ann"]).await.status.success());
    };
    let ended = timeout(DEADLINE, join3(pass("silent", false), overloaded, revoked));
    let (silent, waiting, ()) = ended.await.expect("they end at once");
    for answer in [silent, waiting] {
        assert_eq!(answer.status, 401);
        let error = answer.json().await["error"].clone();
        assert_eq!(
            (&error["type"], &error["message"]),
            (&json!("authentication_error"), &json!("this token is no longer valid"))
        );
    }
    assert!(timeout(DEADLINE, pieces.try_text()).await.expect("it ends").is_none(), "it is cut off");
    let none_left = async { while !list().await.is_empty() {} };
    timeout(DEADLINE, none_left).await.expect("none goes on");
}
