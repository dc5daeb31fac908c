//! Requests with tools, a whole history and a key, across the end of the server.

use everturn_sim::{Loopback, Request, chat, fault};
use hyper::Method;
use serde_json::{Value, json};

use crate::{
    client::{self, Response, get},
    home::{Home, LONG, Server},
};

fn home(provider: &Loopback) -> Home {
    Home::with(&format!(
        "[retry]\n{LONG}\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    ))
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "chunks": [{ "type": "text", "text": text }] })
}

fn tools() -> Value {
    json!([{ "name": "weather", "inputSchema": { "type": "object" } }])
}

async fn keyed(server: &Server, key: &str, body: &Value) -> Response {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    client::send(server, Method::POST, "/chat", &headers, body.to_string()).await
}

/// Sends a request with this key, and returns its turn's events and its conversation.
async fn send(server: &Server, key: &str, body: &Value) -> (Vec<Value>, String) {
    let answer = keyed(server, key, body).await;
    let id = answer.header("x-conversation-id").to_owned();
    let text = answer.text().await;
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), id)
}

#[tokio::test]
async fn pending_caller_tools_survive_and_are_not_paid_for_twice() {
    let provider = Loopback::with(|request: &Request| {
        match String::from_utf8_lossy(&request.body).contains("\"sunny\"") {
            true => chat::text(["It is ", "sunny."]).reply(),
            false => {
                let answer = chat::Answer::new().role();
                answer.tool(0, "w", "weather", ["{\"city\":\"Oslo\"}"]).finish("tool_calls").done().reply()
            }
        }
    })
    .await;
    let home = home(&provider);
    let mut server = home.serve().await;
    let first = json!({ "messages": [user("weather?")], "tools": tools(), "ephemeral": true });
    let (told, id) = send(&server, "k1", &first).await;
    let done = |events: &[Value]| events.iter().find(|event| event["type"] == "done").cloned().unwrap();
    let handed = json!([{ "toolCallId": "w", "toolName": "weather", "input": { "city": "Oslo" } }]);
    assert_eq!(done(&told)["calls"], handed);
    server.child.kill().await.unwrap();

    let server = home.serve().await;
    let (again, same) = send(&server, "k1", &first).await;
    assert_eq!((done(&again), &same), (done(&told), &id));
    assert_eq!(provider.counts().requests, 1);
    let call =
        json!({ "type": "tool-call", "toolCallId": "w", "toolName": "weather", "input": { "city": "Oslo" } });
    let result = json!({ "type": "tool-result", "toolCallId": "w", "toolName": "weather", "content": "sunny", "isError": false });
    let second = json!({
        "conversationId": id,
        "messages": [user("weather?"), { "role": "assistant", "chunks": [call] }, { "role": "tool", "chunks": [result] }],
        "tools": tools(),
    });
    let (told, _) = send(&server, "k2", &second).await;
    let text: String = told.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!((text.as_str(), provider.counts().requests), ("It is sunny.", 2));
    assert_eq!(get(&server, "/conversations").await.json().await, json!([]));
}

#[tokio::test]
async fn a_pending_request_is_found_again_by_its_key() {
    let provider = Loopback::start([fault::overloaded(), chat::text(["Hello"]).reply()]).await;
    let home = home(&provider);
    let mut server = home.serve().await;
    let body = json!({ "messages": [user("hi")], "ephemeral": true, "temperature": 0.5 });
    let mut waiting = keyed(&server, "k", &body).await;
    let id = waiting.header("x-conversation-id").to_owned();
    while !waiting.line().await.unwrap().contains("provider-retry") {}
    server.child.kill().await.unwrap();

    let server = home.serve().await;
    let mut again = keyed(&server, "k", &body).await;
    assert_eq!(again.header("x-conversation-id"), id);
    assert!(again.line().await.unwrap().contains("user-message"), "from its start");
    let other = json!({ "messages": [user("ho")], "ephemeral": true });
    let refused = keyed(&server, "k", &other).await;
    assert_eq!(refused.status, 409);
    assert_eq!(provider.counts().requests, 1);
    let now = format!("/conversations/{id}/retry/now");
    assert_eq!(client::send(&server, Method::POST, &now, &[], String::new()).await.status, 200);
    let rest = again.text().await;
    assert!(rest.contains("Hello") && rest.contains("turn-sealed"), "{rest}");
    // The request's parameters were saved with the turn.
    let asked: Vec<Value> = provider.requests().iter().map(|request| request.json().unwrap()).collect();
    assert_eq!((asked.len(), &asked[1]["temperature"]), (2, &json!(0.5)));
}
