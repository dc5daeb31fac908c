//! Conversations in a real Postgres, which is killed meanwhile.

use std::{
    collections::HashSet,
    fs,
    sync::{Mutex, PoisonError},
};

use everturn_sim::{
    Gate, Loopback, Request, chat, fault,
    postgres::{self, PASSWORD, PostgresServer},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    client::{Socket, get, ndjson, post},
    home::{Home, LONG, Server, stderr, stdout},
    kill::embedder,
};

/// A Postgres server with its directory.
async fn database() -> Option<(PostgresServer, TempDir)> {
    let programs = postgres::programs()?;
    let directory = tempfile::tempdir().unwrap();
    Some((PostgresServer::start(&programs, directory.path(), &[]).await, directory))
}

/// Returns the home of a server that keeps its conversations there.
fn home(database: &PostgresServer, provider: &Loopback) -> Home {
    Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{LONG}\n\
         [postgres]\nurl = \"postgres://everturn@{}/postgres\"\npassword_env = \"PG_SECRET\"\n\
         [[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        database.address(),
        provider.base_url()
    ))
}

async fn serve(home: &Home) -> Server {
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("PG_SECRET", PASSWORD);
    home.launch(command).await.expect("a greeting")
}

async fn watch(server: &Server, id: &str) -> Socket {
    let mut socket = Socket::open(server, "/ws").await;
    let subscribe =
        json!({ "type": "chat.subscribe", "conversationId": id, "cursor": "0", "extensions": true });
    socket.say(&subscribe).await;
    socket
}

/// Returns the text of the history, and the numbers of its tool calls, results and turns.
async fn kept(server: &Server, id: &str) -> (String, [usize; 3]) {
    let history = get(server, &format!("/conversations/{id}")).await.json().await;
    let chunks = history["chunks"].as_array().unwrap();
    let of = |kind: &'static str| chunks.iter().filter(move |stored| stored["chunk"]["type"] == kind);
    assert!(chunks.iter().zip(1..).all(|(stored, seq)| stored["seq"] == seq), "{history}");
    let text = of("text").filter(|stored| stored["role"] == "assistant");
    let text = text.map(|stored| stored["chunk"]["text"].as_str().unwrap()).collect();
    let turns = history["turns"].as_array().unwrap().len();
    (text, [of("tool-call").count(), of("tool-result").count(), turns])
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

#[tokio::test]
async fn a_waiting_turn_survives_the_end_of_postgres_and_of_its_server() {
    let Some((mut database, _directory)) = database().await else { return };
    let provider = Loopback::start([fault::overloaded(), chat::text(["It ", "survived."]).reply()]).await;
    let home = home(&database, &provider);
    let mut server = serve(&home).await;
    let greeting = server.greeting("stop").await.join("\n");
    assert!(greeting.contains("data    Postgres database postgres at 127.0.0.1:"), "{greeting}");
    let lines = post(&server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await;
    watch(&server, "c1").await.events("provider-retry").await;
    let before = get(&server, "/conversations/c1/status").await.json().await;
    database.restart().await;
    let after = get(&server, "/conversations/c1/status").await.json().await;
    assert_eq!(after["retry"], before["retry"], "it still waits");
    server.child.kill().await.unwrap();
    drop(lines);
    database.restart().await;

    let server = serve(&home).await;
    let after = get(&server, "/conversations/c1/status").await.json().await;
    assert_eq!(after["retry"], before["retry"], "the wait keeps its end");
    let mut socket = watch(&server, "c1").await;
    let mut events = socket.events("provider-retry").await;
    socket.say(&json!({ "type": "retry.now", "conversationId": "c1" })).await;
    events.extend(socket.events("turn-sealed").await);
    assert_eq!((count(&events, "done"), provider.counts().requests), (1, 2), "{events:?}");
    assert_eq!(kept(&server, "c1").await, ("It survived.".to_owned(), [0, 0, 1]));
    let listed = get(&server, "/conversations").await.json().await;
    assert_eq!(listed[0]["id"], "c1", "{listed}");
    assert!(!home.journal().exists(), "there is no data file");
}

#[tokio::test]
async fn a_streaming_turn_survives_the_end_of_postgres() {
    let Some((mut database, _directory)) = database().await else { return };
    let gate = Gate::new();
    let answer = chat::text(["One ", "two ", "three."]).reply().stall_before(3, &gate);
    let provider = Loopback::start([answer]).await;
    let home = home(&database, &provider);
    let server = serve(&home).await;
    let lines = post(&server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await;
    gate.reached().await;
    database.kill();
    gate.open();
    // The end of the answer is saved when the database is back.
    database.restart().await;
    let events = ndjson(lines).await;
    assert_eq!([count(&events, "done"), count(&events, "turn-sealed")], [1, 1], "{events:?}");
    assert_eq!(kept(&server, "c1").await, ("One two three.".to_owned(), [0, 0, 1]));
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn a_turn_whose_postgres_is_away_for_long_says_so_and_ends_when_it_is_back() {
    let Some((mut database, _directory)) = database().await else { return };
    let gate = Gate::new();
    let answer = |gate: &Gate| chat::text(["One ", "two ", "three."]).reply().stall_before(3, gate);
    let provider = Loopback::start([answer(&gate), answer(&gate)]).await;
    let home = home(&database, &provider);
    let server = serve(&home).await;
    post(&server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await;
    let mut socket = watch(&server, "c1").await;
    gate.reached().await;
    database.kill();
    gate.open();
    let error = socket.hear("chat.error").await["message"].to_string();
    assert!(error.contains("Postgres database postgres at 127.0.0.1:"), "{error}");
    assert!(error.contains("check that Postgres is running") && !error.contains(PASSWORD), "{error}");
    database.restart().await;
    let mut socket = watch(&server, "c1").await;
    let events = socket.events("turn-sealed").await;
    assert_eq!(["done", "turn-sealed"].map(|kind| count(&events, kind)), [1, 1], "{events:?}");
    assert_eq!(kept(&server, "c1").await, ("One two three.".to_owned(), [0, 0, 1]));
}

/// Refuses each message once, then calls a tool, then answers.
async fn provider() -> Loopback {
    let refused = Mutex::new(HashSet::new());
    Loopback::with(move |request: &Request| {
        let messages = request.json().unwrap()["messages"].as_array().unwrap().clone();
        let message = messages[0]["content"].to_string();
        if refused.lock().unwrap_or_else(PoisonError::into_inner).insert(message) {
            return fault::overloaded();
        }
        match messages.iter().any(|message| message["role"] == "tool") {
            true => chat::text(["The dice ", "were ", "rolled."]).reply(),
            false => {
                let answer = chat::Answer::new().role().text("Let me ").text("roll. ");
                answer.tool(0, "call_1", "roll_dice", ["{}"]).finish("tool_calls").done().reply()
            }
        }
    })
    .await
}

#[tokio::test]
async fn whenever_postgres_is_killed_the_turn_ends_once_and_no_tool_runs_twice() {
    let Some((mut database, _directory)) = database().await else { return };
    let (provider, home) = (provider().await, Home::empty());
    let mut command = embedder::command(&home, &provider, crate::kill::Program::Embedder);
    command.env(embedder::JOURNAL, database.url());
    let server = home.launch(command).await.expect("a greeting");
    for killed_after in 0.. {
        let id = format!("c{killed_after}");
        let lines = post(&server, "/chat", &json!({ "conversationId": id, "message": id })).await;
        let mut socket = watch(&server, &id).await;
        let mut events: Vec<Value> = Vec::new();
        let is_sealed = |events: &[Value]| events.last().is_some_and(|event| event["type"] == "turn-sealed");
        while events.len() < killed_after && !is_sealed(&events) {
            events.push(socket.hear("chat.delta").await["event"].take());
        }
        let was_sealed = is_sealed(&events);
        database.restart().await;
        if !was_sealed {
            events.extend(socket.events("turn-sealed").await);
        }
        drop(lines);
        let counts = ["user-message", "done", "turn-sealed", "tool-result"].map(|kind| count(&events, kind));
        assert_eq!(counts, [1; 4], "killed after {killed_after}: {events:#?}");
        let (text, counts) = kept(&server, &id).await;
        assert_eq!(text, "Let me roll. The dice were rolled.", "killed after {killed_after}");
        assert_eq!(counts, [1; 3], "killed after {killed_after}");
        let runs = fs::read_to_string(embedder::trace(&home)).unwrap().lines().count();
        assert_eq!(runs, killed_after + 1, "one call, one run");
        if was_sealed {
            return;
        }
    }
}

#[tokio::test]
async fn the_terminal_uses_the_database_alone_and_reads_it_beside_a_server() {
    let Some((database, _directory)) = database().await else { return };
    let said = |text: &str| chat::text([text.to_owned()]).reply();
    let provider = Loopback::start([said("One."), said("Two."), said("Three.")]).await;
    let home = home(&database, &provider);
    let run = async |words: &[&str]| {
        let output = home.command(words).env("PG_SECRET", PASSWORD).output().await.unwrap();
        (output.status.success(), stdout(&output), stderr(&output))
    };
    let (is_done, told, error) = run(&["conversations", "list"]).await;
    assert!(!is_done && told.is_empty() && error.contains("nothing was kept there yet"), "{error}");
    assert_eq!(
        run(&["chat", "--new-conversation", "first", "hi"]).await,
        (true, "One.\n".into(), String::new())
    );
    assert_eq!(run(&["run", "--continue", "more"]).await, (true, "Two.\n".into(), String::new()));
    assert!(!home.journal().exists(), "no file is used");

    let mut server = serve(&home).await;
    let (_, listed, error) = run(&["conversations", "list"]).await;
    assert!(listed.contains("first") && error.is_empty(), "{listed}{error}");
    let (_, exported, _) = run(&["conversations", "export"]).await;
    assert!(exported.contains("One.") && exported.contains("Two."), "{exported}");
    let (_, told, error) = run(&["chat", "hello"]).await;
    assert!(told == "Three.\n" && error.starts_with("Not kept: another everturn uses Postgres"), "{error}");
    let delete = ["conversations", "delete", "--yes", "--older-than", "0d"];
    let (is_done, _, error) = run(&delete).await;
    assert!(!is_done && error.contains("have it delete them, with --server"), "{error}");
    server.child.kill().await.unwrap();
    let (is_done, told, error) = run(&delete).await;
    assert!(is_done && told.starts_with("Deleted first \u{201c}hi\u{201d} (4 chunks)"), "{told}{error}");
    assert_eq!(run(&["conversations", "list"]).await.1, "No conversations yet.\n");
}

#[tokio::test]
async fn conversations_of_a_database_are_not_looked_for_in_a_file() {
    let home = Home::with("[postgres]\nurl = \"postgres://everturn@127.0.0.1:1/postgres\"\n");
    let listed = home.run(&["conversations", "list"]).await;
    let error = stderr(&listed);
    assert!(!listed.status.success() && error.contains("check that Postgres is running"), "{error}");
}

#[tokio::test]
async fn a_database_belongs_to_one_server_and_errors_do_not_repeat_the_password() {
    let Some((database, _directory)) = database().await else { return };
    let provider = Loopback::start([]).await;
    let home = home(&database, &provider);
    let _first = serve(&home).await;
    let mut second = home.command(&["--listen", "127.0.0.1:0"]);
    let refused = second.env("PG_SECRET", PASSWORD).output().await.unwrap();
    let error = stderr(&refused);
    assert!(!refused.status.success() && error.contains("is in use by another Everturn server"), "{error}");
    assert!(error.contains("several servers share conversations over NATS only"), "{error}");

    let mut wrong = home.command(&["--listen", "127.0.0.1:0"]);
    let refused = wrong.env("PG_SECRET", "wrong-8-word").output().await.unwrap();
    let error = stderr(&refused);
    assert!(!refused.status.success() && error.contains("password authentication failed"), "{error}");
    assert!(!error.contains("wrong-8-word"), "{error}");
}
