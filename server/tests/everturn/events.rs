//! `--json`: the events of a turn, for programs.

use std::process::Stdio;

use everturn_sim::{Gate, Loopback, chat, fault};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::{
    client::Socket,
    home::{Home, LONG, SHORT, stderr, stdout},
};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_line_is_an_event_and_nothing_else_is_printed() {
    let provider = Loopback::start([fault::overloaded(), chat::text(["Hel", "lo"]).reply()]).await;
    let home = Home::with_provider(&provider, SHORT);
    for command in ["chat", "run"] {
        let output = home.run(&[command, "--json", "hi"]).await;
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        let events = lines(&stdout(&output));
        let types = types(&events);
        assert_eq!((types[0], types.last()), ("user-message", Some(&"turn-sealed")), "{types:?}");
        assert!(types.contains(&"done") && types.contains(&"turn-start"), "{types:?}");
        let deltas = events.iter().filter(|event| event["type"] == "text-delta");
        assert_eq!(deltas.map(|event| event["delta"].as_str().unwrap()).collect::<String>(), "Hello");
        assert_eq!(types.contains(&"provider-retry"), command == "chat", "{types:?}");
        let ids: Vec<&Value> = events.iter().map(|event| &event["conversationId"]).collect();
        assert!(ids.iter().all(|id| **id == *ids[0] && id.is_string()));
    }
}

#[tokio::test]
async fn events_are_as_the_server_sends_them() {
    let provider = Loopback::start([chat::text(["H\u{e9}\u{1b}[2J"]).reply()]).await;
    let server = Home::with_provider(&provider, SHORT).serve().await;
    let words = ["run", "--json", "--server", &server.url, "--new-conversation", "c", "hi"];
    let output = Home::empty().run(&words).await;
    let mut socket = Socket::open(&server, "/ws").await;
    let subscribe =
        json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": "0", "extensions": true });
    socket.say(&subscribe).await;
    let sent = socket.events("turn-sealed").await;
    let told = lines(&stdout(&output));
    // Before the turn there is the status, and what is not kept is only told to those who watch.
    assert_eq!(sent[0]["type"], "status");
    assert!(sent[1..].iter().all(|event| told.contains(event)), "{told:?}");
    assert!(!stdout(&output).contains('\u{1b}'), "{:?}", stdout(&output));
}

#[tokio::test]
async fn events_come_as_they_happen_and_a_message_can_be_piped_in() {
    let gate = Gate::new();
    let provider = Loopback::start([chat::text(["Hello", " again."]).reply().stall_before(2, &gate)]).await;
    let home = Home::with_provider(&provider, SHORT);
    let mut child = home.command(&["chat", "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hi").await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["type"] == "text-delta" {
            gate.open();
        }
        seen.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen.iter().filter(|kind| *kind == "text-delta").count(), 2, "{seen:?}");
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn how_it_ended_is_an_exit_code() {
    let provider = Loopback::start([fault::overloaded()]).await;
    let home = Home::with_provider(&provider, SHORT);
    let failed = home.run(&["chat", "--json", "hi"]).await;
    assert_eq!(failed.status.code(), Some(1));
    let events = lines(&stdout(&failed));
    let done = events.iter().find(|event| event["type"] == "done").unwrap();
    assert_eq!(done["reason"], "error");
    let refused = home.run(&["run", "--json", "--model", "no/such", "hi"]).await;
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(1), ""));
    assert!(stderr(&refused).contains("known models: sim/model"), "{}", stderr(&refused));

    let waiting = Loopback::start([fault::overloaded()]).await;
    let home = Home::with_provider(&waiting, LONG);
    let child = home.command(&["run", "--json", "hi"]).spawn().unwrap();
    waiting.arrived(1).await;
    let id = child.id().unwrap().to_string();
    assert!(tokio::process::Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    let stopped = child.wait_with_output().await.unwrap();
    assert_eq!(stopped.status.code(), Some(130));
    assert_eq!(lines(&stdout(&stopped)).last().unwrap()["type"], "turn-sealed");
}

#[tokio::test]
async fn a_report_is_one_of_the_events() {
    let report = json!({ "status": "done" });
    let reply = chat::tool("call_1", "final_report", [report.to_string()]).reply();
    let provider = Loopback::start([reply]).await;
    let home = Home::with_provider(&provider, SHORT);
    std::fs::write(home.place("schema.json"), r#"{"type":"object","required":["status"]}"#).unwrap();
    let schema = home.place("schema.json").display().to_string();
    let output = home.run(&["run", "--json", "--report", &schema, "hi"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let events = lines(&stdout(&output));
    let told = events.iter().find(|event| event["type"] == "final-report").unwrap();
    assert_eq!(told["report"], report);
}
