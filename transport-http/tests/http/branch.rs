//! Answering a user message again, and moving a waiting turn.

use everturn_wire::Value;
use hyper::StatusCode;
use serde_json::json;

use crate::{
    client::{get, post},
    world,
    world::World,
};

const RETRY: &str = "/conversations/c/retry";

async fn say(world: &mut World, question: &str, answer: &str) -> Vec<String> {
    let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": question })).await;
    let call = world.call().await;
    let said = call.said();
    call.answer(answer);
    stream.text().await;
    said
}

async fn again(world: &mut World, body: Value, answer: &str) -> Vec<String> {
    let begun = post(world.address, RETRY, body).await;
    assert_eq!(begun.status, StatusCode::OK);
    let begun = begun.json().await;
    assert!(begun["turnId"].is_string(), "{begun}");
    let call = world.call().await;
    let said = call.said();
    call.answer(answer);
    let path = format!("/conversations/c/events?cursor={}", begun["cursor"].as_str().unwrap());
    let mut events = get(world.address, &path).await;
    while !events.event().await.1.contains("turn-sealed") {}
    said
}

#[tokio::test]
async fn any_message_is_answered_again_or_edited() {
    let mut world = world().await;
    say(&mut world, "Q1", "A1").await;
    say(&mut world, "Q2", "A2").await;
    assert_eq!(again(&mut world, json!({ "seq": 1 }), "B1").await, ["User Q1"]);
    assert_eq!(say(&mut world, "Q3", "B3").await, ["User Q1", "Assistant B1", "User Q3"]);
    let edited = again(&mut world, json!({ "seq": 6, "message": "Q3c", "model": "test/large" }), "C3").await;
    assert_eq!(edited, ["User Q1", "Assistant B1", "User Q3c"]);
    let window = get(world.address, "/conversations/c").await.json().await;
    let chunks = window["chunks"].as_array().unwrap();
    let seqs: Vec<_> = chunks.iter().map(|chunk| chunk["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=9).collect::<Vec<_>>(), "nothing is taken out");
    let marks: Vec<_> = chunks.iter().map(|chunk| chunk["supersedes"].as_u64().unwrap_or(0)).collect();
    assert_eq!(marks, [0, 0, 0, 0, 2, 0, 0, 6, 0]);
}

#[tokio::test]
async fn what_cannot_be_answered_again_is_refused_with_a_status() {
    let mut world = world().await;
    say(&mut world, "Q1", "A1").await;
    say(&mut world, "Q2", "A2").await;
    again(&mut world, json!({ "seq": 1 }), "B1").await;
    for (body, status, why) in [
        (json!({ "seq": 9 }), 400, "there is no chunk 9"),
        (json!({ "seq": 2 }), 400, "chunk 2 is no user message"),
        (json!({ "seq": 3 }), 409, "a later version replaced it"),
        (json!({ "seq": 1, "message": " " }), 400, "it is empty"),
        (json!({ "seq": 1, "message": "x".repeat((1 << 20) + 1) }), 400, "the most is 1048576"),
        (json!({}), 400, "name the turn, or a user message by its seq"),
        (json!({ "seq": "1" }), 422, "expected a whole number"),
        (json!({ "seq": 1.5 }), 422, "expected a whole number"),
    ] {
        let answer = post(world.address, RETRY, body.clone()).await;
        assert_eq!(answer.status.as_u16(), status, "{body:.80}");
        let error = answer.error().await;
        assert!(error.contains(why), "{body:.80}: {error}");
    }
    let _stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Q3" })).await;
    let _call = world.call().await;
    let busy = post(world.address, RETRY, json!({ "seq": 1 })).await;
    assert_eq!(busy.status, StatusCode::CONFLICT);
    assert!(busy.error().await.contains("is busy with a turn"));
}

#[tokio::test]
async fn a_turn_that_waits_moves_to_another_model() {
    let mut world = world().await;
    let mut stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.overloaded();
    while !stream.line().await.unwrap().contains("provider-retry") {}
    let path = "/conversations/c/retry/now";
    let unknown = post(world.address, path, json!({ "model": "no/such" })).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    let moved = post(world.address, path, json!({ "model": "test/large" })).await;
    assert_eq!(moved.json().await, json!({ "conversationId": "c", "wasRetrying": true }));
    let call = world.call().await;
    assert_eq!(call.request.model, "large");
    assert!(stream.text().await.contains(r#""reason":"aborted""#), "the stream of the first turn ends");
    let again = post(world.address, path, json!({ "model": "test/small" })).await;
    assert_eq!(again.json().await["wasRetrying"], false, "it waits no more");
    call.answer("Hello");
}
