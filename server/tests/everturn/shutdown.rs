//! A server that is asked to end: turns come to rest, clients are told, and the next server continues.

use std::time::{Duration, Instant};

use everturn_sim::{Gate, Loopback, chat, fault};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::{Response, Socket, get, post},
    home::{DEADLINE, Home, LONG, Server},
};

/// Less than the grace period of a running turn, which is two seconds.
const SOON: Duration = Duration::from_millis(1_900);

async fn watch(server: &Server, cursor: Option<&str>) -> Socket {
    let mut socket = Socket::open(server, "/ws").await;
    let subscribe =
        json!({ "type": "chat.subscribe", "conversationId": "c1", "cursor": cursor, "extensions": true });
    socket.say(&subscribe).await;
    socket
}

async fn begin(server: &Server) -> Response {
    post(server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await
}

/// Waits until the server refuses new turns.
async fn until_it_refuses(server: &Server) {
    loop {
        let answer = begin(server).await;
        if answer.status == 503 {
            let error = answer.json().await["error"].take();
            assert!(error.as_str().unwrap().contains("shutting down"), "{error}");
            return;
        }
        assert_eq!(answer.status, 409, "busy until then");
    }
}

/// Checks that it ends successfully. Returns how long that took.
async fn ended(server: &mut Server) -> Duration {
    let begun = Instant::now();
    let status = timeout(DEADLINE, server.child.wait()).await.expect("it ends in time").unwrap();
    assert_eq!(status.code(), Some(0));
    begun.elapsed()
}

/// A model that pauses in the middle of an answer, and one that does not.
async fn provider(gate: &Gate) -> Loopback {
    Loopback::start([
        chat::text(["one", " two"]).reply().stall_before(2, gate),
        chat::text(["one two"]).reply(),
    ])
    .await
}

async fn goes_on(home: &Home, cursor: &str) {
    let server = home.serve().await;
    let rest = watch(&server, Some(cursor)).await.events("turn-sealed").await;
    let count = |kind: &str| rest.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("step-rewound"), count("done"), count("turn-sealed")), (1, 1, 1), "{rest:#?}");
    let texts: Vec<&Value> = rest.iter().filter(|event| event["type"] == "text-delta").collect();
    assert!(texts.iter().map(|event| event["delta"].as_str().unwrap()).eq(["one two"]), "{texts:?}");
    let history = get(&server, "/conversations/c1").await.json().await;
    assert_eq!(history["chunks"].as_array().unwrap().len(), 2, "{history}");
}

#[tokio::test]
async fn a_stream_is_interrupted_after_the_grace_period_and_every_client_is_informed() {
    let gate = Gate::new();
    let provider = provider(&gate).await;
    let home = Home::with_provider(&provider, LONG);
    let mut server = home.serve().await;
    let mut lines = begin(&server).await;
    let mut stream = get(&server, "/conversations/c1/events").await;
    let mut socket = watch(&server, None).await;
    let cursor = loop {
        let delta = socket.hear("chat.delta").await;
        if delta["event"]["type"] == "text-delta" {
            break delta["cursor"].as_str().unwrap().to_owned();
        }
    };
    server.terminate().await;
    until_it_refuses(&server).await;
    assert_eq!(socket.close_code().await, 1001);
    let mut said = String::new();
    while let Some(line) = lines.line().await {
        said.push_str(&line);
    }
    assert!(said.contains("text-delta") && !said.contains("done") && !said.contains("error"), "{said}");
    while stream.line().await.is_some() {}
    ended(&mut server).await;
    goes_on(&home, &cursor).await;
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let gate = Gate::new();
    let provider = provider(&gate).await;
    let home = Home::with_provider(&provider, LONG);
    let mut server = home.serve().await;
    let _lines = begin(&server).await;
    let mut socket = watch(&server, None).await;
    socket.events("text-delta").await;
    server.terminate().await;
    until_it_refuses(&server).await;
    server.terminate().await;
    let took = ended(&mut server).await;
    assert!(took < SOON, "{took:?}");
    goes_on(&home, "9999").await;
}

#[tokio::test]
async fn a_wait_does_not_delay_the_shutdown() {
    let provider = Loopback::start([fault::overloaded(), chat::text(["one two"]).reply()]).await;
    let home = Home::with_provider(&provider, LONG);
    let mut server = home.serve().await;
    let mut lines = begin(&server).await;
    let mut socket = watch(&server, None).await;
    socket.events("provider-retry").await;
    let before = get(&server, "/conversations/c1/status").await.json().await;
    server.terminate().await;
    let took = ended(&mut server).await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(socket.close_code().await, 1001);
    while lines.line().await.is_some() {}
    let server = home.serve().await;
    let after = get(&server, "/conversations/c1/status").await.json().await;
    assert_eq!(after["retry"], before["retry"], "the wait keeps its end");
}
