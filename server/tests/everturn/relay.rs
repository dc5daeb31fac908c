//! One turn over three transports: all clients see the same, which is what happened at the socket.

use everturn_sim::{ClosedPort, Loopback, chat, fault};
use hyper::Method;
use serde_json::{Value, json};
use tokio::join;

use crate::{
    client::{Socket, get, ndjson, post, send, sse},
    home::{Home, LONG, Server},
};

async fn retry_now(server: &Server, id: &str) {
    let answer = post(server, &format!("/conversations/{id}/retry/now"), &json!({})).await;
    assert_eq!(answer.json().await["wasRetrying"], true);
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn text(events: &[Value]) -> String {
    events
        .iter()
        .filter(|event| event["type"] == "text-delta")
        .filter_map(|event| event["delta"].as_str())
        .collect()
}

/// Joins streamed text, because a subscriber that is behind receives it in larger pieces.
fn joined(events: Vec<Value>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for event in events {
        match all.last_mut() {
            Some(last) if last["type"] == "text-delta" && event["type"] == "text-delta" => {
                let text = [&*last, &event].map(|event| event["delta"].as_str().unwrap()).concat();
                last["delta"] = text.into();
            }
            _ => all.push(event),
        }
    }
    all
}

#[tokio::test]
async fn every_transport_sends_the_same_turn() {
    let limited = fault::rate_limited(None);
    let answer = chat::text(["The ", "turn ", "survived."]).reply();
    let provider = Loopback::start([limited.clone(), limited, answer]).await;
    let server = Home::with_provider(&provider, LONG).serve().await;
    let lines = post(&server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await;
    assert_eq!(lines.status, 200);
    assert_eq!(lines.header("x-conversation-id"), "c1");
    assert!(lines.header("content-type").starts_with("application/x-ndjson"));

    // The others connect while the turn waits, and receive it from its start.
    let mut first = Socket::open(&server, "/ws").await;
    first.say(&json!({ "type": "chat.subscribe", "conversationId": "c1" })).await;
    let mut of_first = first.events("provider-retry").await;
    assert_eq!(kinds(&of_first), ["user-message", "turn-start", "provider-retry"]);
    retry_now(&server, "c1").await;
    of_first.extend(first.events("provider-retry").await);
    let mut second = Socket::open(&server, "/").await;
    second.say(&json!({ "type": "chat.subscribe", "conversationId": "c1" })).await;
    let stream = get(&server, "/conversations/c1/events").await;
    assert!(stream.header("content-type").starts_with("text/event-stream"));
    let mut of_second = second.events("provider-retry").await;
    of_second.extend(second.events("provider-retry").await);
    retry_now(&server, "c1").await;

    let (of_lines, of_stream) = join!(ndjson(lines), sse(stream));
    of_first.extend(first.events("turn-sealed").await);
    of_second.extend(second.events("turn-sealed").await);
    assert_eq!(text(&of_lines), "The turn survived.");
    let expected = ["step-complete", "done", "turn-sealed"];
    assert_eq!(&kinds(&of_lines)[of_lines.len() - 3..], expected);
    let [of_first, of_second, of_stream, of_lines] = [of_first, of_second, of_stream, of_lines].map(joined);
    assert_eq!(of_first, of_lines);
    assert_eq!(of_second, of_lines);
    assert_eq!(of_stream, of_lines);

    let retries = kinds(&of_lines).iter().filter(|kind| **kind == "provider-retry").count();
    let steps = kinds(&of_lines).iter().filter(|kind| **kind == "step-complete").count();
    assert_eq!((retries, steps, provider.counts().requests), (2, 1, retries + steps));
}

#[tokio::test]
async fn a_provider_that_is_not_reachable_yet_is_waited_for() {
    let port = ClosedPort::reserve().unwrap();
    let server = Home::with_model(&port.base_url(), LONG).serve().await;
    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.send", "conversationId": "c1", "message": "hi" })).await;
    let before = socket.events("provider-retry").await;
    assert_eq!(before.last().unwrap()["category"], "network");
    let provider = port.open([chat::text(["Here I am."]).reply()]).unwrap();
    socket.say(&json!({ "type": "retry.now", "conversationId": "c1" })).await;
    let after = socket.events("turn-sealed").await;
    assert_eq!(text(&after), "Here I am.");
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn a_wait_can_be_cancelled_while_the_server_keeps_running() {
    let provider = Loopback::start([fault::overloaded(), chat::text(["Next."]).reply()]).await;
    let server = Home::with_provider(&provider, LONG).serve().await;
    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.send", "conversationId": "c1", "message": "hi" })).await;
    socket.events("provider-retry").await;
    socket.say(&json!({ "type": "retry.abort", "conversationId": "c1" })).await;
    let end = socket.events("turn-sealed").await;
    assert_eq!(end.iter().find(|event| event["type"] == "done").unwrap()["reason"], "aborted");
    let lines = post(&server, "/chat", &json!({ "conversationId": "c1", "message": "again" })).await;
    assert_eq!(text(&ndjson(lines).await), "Next.");
}

#[tokio::test]
async fn rejections_have_a_reason_and_the_server_survives() {
    let server = Home::empty().serve().await;
    let unknown = post(&server, "/chat", &json!({ "message": "hi", "model": "no/such" })).await;
    assert_eq!(unknown.status, 400);
    let error = unknown.json().await["error"].to_string();
    assert!(error.contains("no/such") && error.contains("demo/flaky"), "{error}");
    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.send", "message": "hi", "model": "no/such" })).await;
    let error = socket.hear("chat.error").await["message"].to_string();
    assert!(error.contains("demo/flaky"), "{error}");
    assert_eq!(get(&server, "/conversations/none/status").await.status, 404);
    let broken =
        send(&server, Method::POST, "/chat", &[("content-type", "application/json")], "{".to_owned()).await;
    assert_eq!(broken.status, 400);
    assert_eq!(get(&server, "/models").await.json().await["models"], json!(["demo/flaky"]));
    assert_eq!(get(&server, "/health").await.json().await, json!({ "ok": true }));
}

#[tokio::test]
async fn the_demo_s_tool_runs_once() {
    let server = Home::empty().serve().await;
    let roll = json!({ "conversationId": "c1", "message": "roll the dice" });
    let lines = post(&server, "/chat", &roll).await;
    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.subscribe", "conversationId": "c1" })).await;
    for _ in 0..2 {
        socket.events("provider-retry").await;
        retry_now(&server, "c1").await;
    }
    let events = ndjson(lines).await;
    let results: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool-result").collect();
    assert_eq!(results.len(), 1);
    assert_eq!((&results[0]["toolName"], &results[0]["isError"]), (&json!("roll_dice"), &json!(false)));
    assert!(text(&events).contains(results[0]["content"].as_str().unwrap()));
}
