//! Calls that control a conversation.

use std::time::Duration;

use everturn_wire::Value;
use hyper::StatusCode;
use serde_json::json;

use crate::{
    client::{Answer, delete, get, patch, post},
    world,
    world::World,
};

/// Creates a turn of conversation `c` that waits for a retry, and returns the stream of its events.
async fn waiting(world: &mut World) -> Answer {
    let mut stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.overloaded();
    while !stream.line().await.unwrap().contains("provider-retry") {}
    stream
}

async fn told(world: &World, path: &str) -> Value {
    let answer = post(world.address, path, Value::Null).await;
    assert_eq!(answer.status, StatusCode::OK);
    answer.json().await
}

async fn status(world: &World) -> Value {
    get(world.address, "/conversations/c/status").await.json().await
}

#[tokio::test]
async fn a_wait_is_seen_and_skipped() {
    let mut world = world().await;
    let stream = waiting(&mut world).await;
    let state = status(&world).await;
    assert_eq!((&state["isActive"], &state["status"]), (&json!(true), &json!("active")));
    let failure = json!({ "category": "overloaded", "code": "529", "message": "HTTP 529: Overloaded" });
    let mut waiting =
        json!({ "phase": "waiting", "attempt": 0, "maxAttempts": 21, "delayMs": 5000, "nextAt": 5000 });
    waiting.as_object_mut().unwrap().extend(failure.as_object().unwrap().clone());
    assert_eq!(state["retry"], waiting);
    let expected = json!({ "conversationId": "c", "wasRetrying": true });
    assert_eq!(told(&world, "/conversations/c/retry/now").await, expected);
    let call = world.call().await;
    let expected = json!({ "conversationId": "c", "wasRetrying": false });
    assert_eq!(told(&world, "/conversations/c/retry/now").await, expected);
    // The series of retries lasts until something is shown.
    let asking = &status(&world).await["retry"];
    assert_eq!((&asking["phase"], &asking["nextAt"]), (&json!("asking"), &Value::Null));
    assert_eq!((&asking["attempt"], &asking["message"]), (&waiting["attempt"], &waiting["message"]));
    call.answer("Hello");
    assert!(stream.text().await.contains(r#""reason":"stop""#));
}

#[tokio::test]
async fn a_wait_is_ended() {
    let mut world = world().await;
    let stream = waiting(&mut world).await;
    let expected = json!({ "conversationId": "c", "wasRetrying": true });
    assert_eq!(told(&world, "/conversations/c/retry/abort").await, expected);
    stream.text().await;
    let expected = json!({ "conversationId": "c", "wasRetrying": false });
    assert_eq!(told(&world, "/conversations/c/retry/abort").await, expected);
    assert_eq!(status(&world).await["isActive"], false);
}

#[tokio::test]
async fn a_turn_is_stopped_once() {
    let mut world = world().await;
    let stream = waiting(&mut world).await;
    assert_eq!(
        told(&world, "/conversations/c/stop").await,
        json!({ "conversationId": "c", "abortedTurn": true })
    );
    let events = stream.text().await;
    assert!(events.contains(r#""reason":"aborted""#) && !events.contains(r#""type":"error""#), "{events}");
    assert_eq!(
        told(&world, "/conversations/c/stop").await,
        json!({ "conversationId": "c", "abortedTurn": false })
    );
}

#[tokio::test]
async fn a_closed_conversation_is_opened_by_a_message() {
    let mut world = world().await;
    let stream = waiting(&mut world).await;
    assert_eq!(
        told(&world, "/conversations/c/close").await,
        json!({ "conversationId": "c", "abortedTurn": true })
    );
    stream.text().await;
    assert_eq!(status(&world).await["status"], "closed");
    assert_eq!(
        told(&world, "/conversations/c/close").await,
        json!({ "conversationId": "c", "abortedTurn": false })
    );
    let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    stream.text().await;
    assert_eq!(status(&world).await["status"], "idle");
    told(&world, "/conversations/c/close").await;
    assert_eq!(status(&world).await["status"], "closed");
}

#[tokio::test]
async fn messages_are_queued_and_taken_back() {
    let mut world = world().await;
    let stream = waiting(&mut world).await;
    let queue = "/conversations/c/queue";
    let first = post(world.address, queue, json!({ "text": "one", "messageId": "m1" })).await.json().await;
    let one = json!({ "messageId": "m1", "text": "one" });
    assert_eq!(first, json!({ "conversationId": "c", "startedTurn": false, "queue": [one] }));
    let second = post(world.address, queue, json!({ "text": "two" })).await.json().await;
    let two = second["queue"][1].clone();
    assert_eq!((&second["queue"][0], &two["text"]), (&one, &json!("two")));
    for (cancelled, left) in [(true, json!([two])), (false, json!([two]))] {
        let answer = delete(world.address, "/conversations/c/queue/m1").await.json().await;
        assert_eq!(answer, json!({ "conversationId": "c", "cancelled": cancelled, "queue": left }));
        assert_eq!(status(&world).await["queue"], left, "what a page that was opened later reads");
    }
    world.clock.advance(Duration::from_secs(5));
    world.call().await.answer("Hello");
    stream.text().await;
    let call = world.call().await;
    assert!(format!("{:?}", call.request.messages).contains("two"));
    let mut rest = get(world.address, "/conversations/c/events").await;
    call.answer("Sure");
    while !rest.event().await.1.contains("turn-sealed") {}
    assert_eq!(status(&world).await["queue"], json!(null));
    // No turn is running, so it starts at once.
    let third = post(world.address, queue, json!({ "text": "three" })).await.json().await;
    assert_eq!(third, json!({ "conversationId": "c", "startedTurn": true, "queue": [] }));
    world.call().await.answer("Yes");
}

#[tokio::test]
async fn a_conversation_is_renamed_and_deleted_in_the_middle_of_a_turn() {
    let mut world = world().await;
    let stream = waiting(&mut world).await;
    let renamed = patch(world.address, "/conversations/c", json!({ "title": " The storm " })).await;
    assert_eq!(renamed.json().await, json!({ "conversationId": "c", "title": "The storm" }));
    let listed = get(world.address, "/conversations").await.json().await;
    assert_eq!((&listed[0]["title"], &listed[0]["waitsUntil"]), (&json!("The storm"), &json!(5000)));
    let refused = patch(world.address, "/conversations/c", json!({ "title": "" })).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let deleted = delete(world.address, "/conversations/c").await.json().await;
    assert_eq!(deleted, json!({ "conversationId": "c", "abortedTurn": true }));
    let told = stream.text().await;
    assert!(told.contains(r#""reason":"aborted""#) && told.contains("turn-sealed"), "{told}");
    for path in ["/conversations/c", "/conversations/c/status"] {
        assert_eq!(get(world.address, path).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(delete(world.address, "/conversations/c").await.status, StatusCode::NOT_FOUND);
    assert_eq!(get(world.address, "/conversations").await.json().await, json!([]));
}
