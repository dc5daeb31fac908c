//! A server that is killed, and its successor.

use std::sync::atomic::{AtomicUsize, Ordering};

use everturn_sim::{Loopback, Reply, Request, chat, fault};
use serde_json::{Value, json};

use crate::{
    client::{Socket, get, post},
    home::{Home, LONG, Server},
};

/// Subscribes from this cursor, with extensions.
async fn watch(server: &Server, cursor: Option<&str>) -> Socket {
    let mut socket = Socket::open(server, "/ws").await;
    let subscribe =
        json!({ "type": "chat.subscribe", "conversationId": "c1", "cursor": cursor, "extensions": true });
    socket.say(&subscribe).await;
    socket
}

/// Returns the text that a client shows, and the number of tool results it received.
fn shown(events: &[Value]) -> (String, usize) {
    let (mut text, mut step, mut results) = (String::new(), String::new(), Vec::new());
    for event in events {
        match event["type"].as_str().unwrap() {
            "text-delta" => step.push_str(event["delta"].as_str().unwrap()),
            "step-rewound" => {
                step.clear();
                results.retain(|id| *id != event["stepId"]);
            }
            "step-complete" => text.push_str(&std::mem::take(&mut step)),
            "tool-result" => results.push(event["stepId"].clone()),
            _ => {}
        }
    }
    (text, results.len())
}

/// Returns the text of the history, and the numbers of its tool calls and results.
async fn kept(server: &Server) -> (String, usize, usize) {
    let history = get(server, "/conversations/c1").await.json().await;
    let chunks = history["chunks"].as_array().unwrap();
    let of = |kind: &'static str| chunks.iter().filter(move |stored| stored["chunk"]["type"] == kind);
    assert!(chunks.iter().zip(1..).all(|(stored, seq)| stored["seq"] == seq), "{history}");
    let text = of("text").filter(|stored| stored["role"] == "assistant");
    let text = text.map(|stored| stored["chunk"]["text"].as_str().unwrap()).collect();
    (text, of("tool-call").count(), of("tool-result").count())
}

/// Fails once, then calls a tool, then answers.
async fn provider() -> Loopback {
    let calls = AtomicUsize::new(0);
    Loopback::with(move |request: &Request| {
        if calls.fetch_add(1, Ordering::Relaxed) == 0 {
            return fault::overloaded();
        }
        match String::from_utf8_lossy(&request.body).contains(r#""role":"tool""#) {
            true => chat::text(["The dice ", "were ", "rolled."]).reply(),
            false => rolls(),
        }
    })
    .await
}

fn rolls() -> Reply {
    let answer = chat::Answer::new().role().text("Let me ").text("roll. ");
    answer.tool(0, "call_1", "roll_dice", ["{}"]).finish("tool_calls").done().reply()
}

fn home(provider: &Loopback, retry: &str) -> Home {
    Home::with(&format!(
        "[tools]\ndice = true\n[retry]\n{retry}\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\n\
         models = [\"model\"]\n",
        provider.base_url()
    ))
}

#[tokio::test]
async fn killed_after_any_event_the_turn_ends_like_an_undisturbed_one() {
    let quick = "schedule = \"exponential\"\nbase_ms = 50";
    for events_before in 1.. {
        let provider = provider().await;
        let home = home(&provider, quick);
        let mut server = home.serve().await;
        post(&server, "/chat", &json!({ "conversationId": "c1", "message": "roll" })).await;
        let mut socket = watch(&server, Some("0")).await;
        let (mut events, mut cursor) = (Vec::new(), String::new());
        while events.len() < events_before
            && events.last().is_none_or(|event: &Value| event["type"] != "turn-sealed")
        {
            let delta = socket.hear("chat.delta").await;
            cursor = delta["cursor"].as_str().unwrap().to_owned();
            events.push(delta["event"].clone());
        }
        let ended = events.last().is_some_and(|event| event["type"] == "turn-sealed");
        server.child.kill().await.unwrap();

        let server = home.serve().await;
        if !ended {
            let mut socket = watch(&server, Some(&cursor)).await;
            events.extend(socket.events("turn-sealed").await);
        }
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        assert_eq!(
            (count("user-message"), count("done"), count("turn-sealed")),
            (1, 1, 1),
            "{events_before}"
        );
        let (text, calls, results) = kept(&server).await;
        assert_eq!(text, "Let me roll. The dice were rolled.", "{events_before}");
        assert_eq!((calls, results), (1, 1), "{events_before}");
        assert_eq!(shown(&events), (text, 1), "{events_before}: {events:#?}");
        if ended {
            return;
        }
    }
}

#[tokio::test]
async fn a_wait_continues_after_a_restart_and_can_be_skipped_and_cancelled() {
    for (command, reason) in [("retry.now", "stop"), ("retry.abort", "aborted"), ("chat.stop", "aborted")] {
        let provider = provider().await;
        let home = home(&provider, LONG);
        let mut server = home.serve().await;
        post(&server, "/chat", &json!({ "conversationId": "c1", "message": "roll" })).await;
        watch(&server, Some("0")).await.events("provider-retry").await;
        let before = get(&server, "/conversations/c1/status").await.json().await;
        server.child.kill().await.unwrap();

        let server = home.serve().await;
        let after = get(&server, "/conversations/c1/status").await.json().await;
        assert_eq!(after["retry"], before["retry"], "the wait keeps its end");
        assert_eq!(after["retry"]["attempt"], 0);
        let mut socket = watch(&server, None).await;
        assert_eq!(socket.events("provider-retry").await[0]["type"], "user-message", "seen from its start");
        socket.say(&json!({ "type": command, "conversationId": "c1" })).await;
        let end = socket.events("turn-sealed").await;
        let done = end.iter().find(|event| event["type"] == "done").unwrap();
        assert_eq!(done["reason"], reason);
        assert_eq!(provider.counts().requests, if reason == "stop" { 3 } else { 1 });
    }
}

#[tokio::test]
async fn one_file_belongs_to_one_server() {
    let home = Home::empty();
    let _server = home.serve().await;
    let second = home.run(&["--listen", "127.0.0.1:0"]).await;
    assert!(!second.status.success());
    let error = crate::home::stderr(&second);
    assert!(error.contains("everturn.db") && error.contains("in use"), "{error}");
}
