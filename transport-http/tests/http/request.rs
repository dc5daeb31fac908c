//! `POST /chat` with a whole history, tools, parameters and a key.

use everturn_orchestrator::kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::Value;
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::{
    client::{Answer, call, get, post, request},
    world,
    world::World,
};

async fn keyed(world: &World, key: &str, body: Value) -> Answer {
    let request = request(Method::POST, world.address, "/chat")
        .header("content-type", "application/json")
        .header("idempotency-key", key);
    call(world.address, request.body(body.to_string().into()).unwrap()).await
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "chunks": [{ "type": "text", "text": text }] })
}

fn weather() -> Value {
    json!([{ "name": "weather", "description": "The weather.", "inputSchema": { "type": "object" } }])
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_callers_tool_goes_out_and_its_result_comes_in() {
    let mut world = world().await;
    let asked = json!({ "messages": [user("weather?")], "tools": weather(), "ephemeral": true,
        "temperature": 0.5, "toolChoice": { "type": "tool", "name": "weather" } });
    let stream = post(world.address, "/chat", asked).await;
    assert_eq!(stream.status, StatusCode::OK);
    let id = stream.header("x-conversation-id").to_owned();
    let asked = world.call().await;
    assert_eq!(asked.request.parameters.temperature, Some(0.5));
    let arguments = Arguments::Parsed(json!({ "city": "Oslo" }));
    asked.tell(StreamEvent::ToolCall(ToolCall {
        id: "w".into(),
        name: "weather".into(),
        arguments,
        echo: None,
    }));
    asked.tell(StreamEvent::Finished(FinishReason::ToolCalls));
    let told = events(&stream.text().await);
    let done = told.iter().find(|event| event["type"] == "done").unwrap();
    let handed = json!([{ "toolCallId": "w", "toolName": "weather", "input": { "city": "Oslo" } }]);
    assert_eq!((&done["reason"], &done["calls"]), (&json!("tool-calls"), &handed));
    let figures = get(world.address, &format!("/conversations/{id}/metrics")).await.json().await;
    assert_eq!(figures["turns"][0]["calls"], handed);
    assert_eq!(get(world.address, "/conversations").await.json().await, json!([]));

    let call =
        json!({ "type": "tool-call", "toolCallId": "w", "toolName": "weather", "input": { "city": "Oslo" } });
    let result = json!({ "type": "tool-result", "toolCallId": "w", "toolName": "weather", "content": "sunny", "isError": false });
    let messages = json!([user("weather?"), { "role": "assistant", "chunks": [call] }, { "role": "tool", "chunks": [result] }]);
    let body = json!({ "conversationId": id, "messages": messages, "tools": weather() });
    let stream = post(world.address, "/chat", body).await;
    let asked = world.call().await;
    assert_eq!(asked.request.messages.len(), 3);
    asked.answer("It is sunny.");
    assert_eq!(events(&stream.text().await).last().unwrap()["type"], "turn-sealed");
}

#[tokio::test]
async fn what_is_not_supported_is_refused_by_name() {
    let world = world().await;
    let cases = [
        (json!({ "message": "hi", "temperature": 1, "logitBias": {} }), "\"logitBias\" is not supported"),
        (json!({ "messages": [user("hi")], "top_p": 1 }), "\"top_p\" is not supported"),
        (json!({ "message": "hi", "seed": 7 }), "test/small does not support seed"),
        (json!({ "messages": [] }), "messages is empty"),
        (json!({ "message": "hi", "messages": [user("hi")] }), "not both"),
        (json!({}), "it is empty"),
    ];
    for (body, why) in cases {
        let refused = post(world.address, "/chat", body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        let error = refused.error().await;
        assert!(error.contains(why), "{error}");
    }
    let refused = keyed(&world, "k", json!({ "message": "hi", "user": "me" })).await;
    assert!(refused.error().await.contains("\"user\" is not supported"));
    assert_eq!(get(world.address, "/conversations").await.json().await, json!([]));
}

#[tokio::test]
async fn a_plain_message_may_have_fields_of_others() {
    let mut world = world().await;
    let stream = post(world.address, "/chat", json!({ "message": "hi", "workspaceId": "default" })).await;
    world.call().await.answer("hello");
    assert!(stream.text().await.contains("hello"));
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_the_same_turn() {
    let mut world = world().await;
    let body = json!({ "messages": [user("hi")], "ephemeral": true });
    let mut first = keyed(&world, "k-1", body.clone()).await;
    let asked = world.call().await;
    asked.text("hel");
    while !first.line().await.unwrap().contains("hel") {}
    let second = keyed(&world, "k-1", body.clone()).await;
    assert_eq!(second.header("x-conversation-id"), first.header("x-conversation-id"));
    // Only the client that asked first is gone.
    drop(first);
    asked.answer("lo");
    let text =
        |events: &[Value]| -> String { events.iter().filter_map(|event| event["delta"].as_str()).collect() };
    let told = events(&second.text().await);
    assert_eq!((told[0]["type"].as_str(), text(&told)), (Some("user-message"), "hello".to_owned()));
    let third = events(&keyed(&world, "k-1", body).await.text().await);
    assert_eq!((text(&third), &third[0]), ("hello".to_owned(), &told[0]));
    let other = keyed(&world, "k-1", json!({ "messages": [user("ho")], "ephemeral": true })).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert!(other.error().await.contains("send this one with a new key"));
    let bad = keyed(&world, "a b", json!({ "message": "hi" })).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    assert!(world.has_no_call(), "one request was made");
}
