//! Answering a user message again, and moving a waiting turn.

use everturn_wire::Value;
use serde_json::json;

use crate::{
    peer::{Peer, kinds, text},
    world,
    world::World,
};

/// Creates a conversation with two questions and two answers, watched by this peer.
async fn two_answers(world: &mut World) -> Peer {
    let mut peer = Peer::connect(world.address).await;
    for (question, answer) in [("Q1", "A1"), ("Q2", "A2")] {
        peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": question })).await;
        world.call().await.answer(answer);
        peer.events_until("turn-sealed").await;
    }
    peer
}

fn retry(fields: &Value) -> Value {
    let mut command = json!({ "type": "chat.retry", "conversationId": "c" });
    command.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    command
}

#[tokio::test]
async fn any_message_is_answered_again_or_edited_and_who_asks_follows() {
    let mut world = world().await;
    drop(two_answers(&mut world).await);
    let mut peer = Peer::connect(world.address).await;
    peer.say(retry(&json!({ "seq": 1, "model": "test/large" }))).await;
    let call = world.call().await;
    assert_eq!((call.said(), call.request.model.as_str()), (vec!["User Q1".to_owned()], "large"));
    call.answer("B1");
    let events = peer.events_until("turn-sealed").await;
    assert_eq!((kinds(&events)[0], &*text(&events)), ("turn-start", "B1"));
    assert!(!kinds(&events).contains(&"user-message"));
    peer.say(retry(&json!({ "seq": 1, "message": "Q1c" }))).await;
    let call = world.call().await;
    assert_eq!(call.said(), ["User Q1c"]);
    call.answer("C1");
    let events = peer.events_until("turn-sealed").await;
    let told = events.iter().find(|event| event["type"] == "user-message").unwrap();
    assert_eq!(told["text"], "Q1c");
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Q3" })).await;
    assert_eq!(world.call().await.said(), ["User Q1c", "Assistant C1", "User Q3"]);
}

#[tokio::test]
async fn what_cannot_be_answered_again_is_told() {
    let mut world = world().await;
    let mut peer = two_answers(&mut world).await;
    for (fields, why) in [
        (json!({ "seq": 9 }), "there is no chunk 9, the last one is 4"),
        (json!({ "seq": 2 }), "chunk 2 is no user message"),
        (json!({ "seq": -1 }), "chat.retry: invalid"),
        (json!({ "seq": "1" }), "chat.retry: expected a whole number of at least 0, got a string"),
        (json!({ "seq": 1, "message": "" }), "the message cannot be sent: it is empty"),
        (json!({ "seq": 1, "message": "x".repeat((1 << 20) + 1) }), "the most is 1048576"),
        (json!({ "seq": 1, "turnId": "other" }), "it is not the last turn"),
        (json!({ "message": "x" }), "name the turn, or a user message by its seq"),
        (json!({ "seq": 1, "model": "no/such" }), "unknown model"),
    ] {
        let answer = peer.answer_to(retry(&fields)).await;
        let said = answer["message"].as_str().unwrap();
        assert!(answer["type"] == "chat.error" && said.contains(why), "{fields:.80}: {said}");
    }
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Q3" })).await;
    let call = world.call().await;
    peer.events_until("turn-start").await;
    let answer = peer.answer_to(retry(&json!({ "seq": 1 }))).await;
    assert!(answer["message"].as_str().unwrap().contains("is busy with a turn"), "{answer}");
    call.answer("A3");
}

#[tokio::test]
async fn a_turn_that_waits_moves_to_another_model_and_all_who_watch_follow() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let mut other = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": true }))
        .await;
    let call = world.call().await;
    assert_eq!(call.request.model, "small");
    call.overloaded();
    peer.events_until("provider-retry").await;
    other.say(json!({ "type": "chat.subscribe", "conversationId": "c" })).await;
    other.events_until("provider-retry").await;
    let unknown =
        peer.answer_to(json!({ "type": "retry.now", "conversationId": "c", "model": "no/such" })).await;
    assert!(unknown["message"].as_str().unwrap().contains("unknown model"), "{unknown}");
    peer.say(json!({ "type": "retry.now", "conversationId": "c", "model": "test/large" })).await;
    let call = world.call().await;
    assert_eq!((call.request.model.as_str(), call.said()), ("large", vec!["User Hi".to_owned()]));
    call.answer("Hello");
    for peer in [&mut peer, &mut other] {
        let old = peer.events_until("turn-sealed").await;
        let new = peer.events_until("turn-sealed").await;
        assert_eq!(new[0]["type"], "turn-start", "nothing in between: {new:?}");
        assert_eq!(new[0]["retryOf"], old[old.len() - 1]["turnId"]);
        assert_eq!(text(&new), "Hello");
    }
}
