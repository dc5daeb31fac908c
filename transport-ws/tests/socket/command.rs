//! Commands and their answers.

use std::time::Duration;

use everturn_wire::{Command, Value};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::{
    peer::{Peer, kinds, text},
    world,
    world::World,
};

/// Creates a turn that waits for a retry, watched by this peer.
async fn waiting(world: &mut World) -> Peer {
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": true }))
        .await;
    world.call().await.overloaded();
    peer.events_until("provider-retry").await;
    peer
}

fn reason(events: &[Value]) -> &Value {
    &events.iter().find(|event| event["type"] == "done").unwrap()["reason"]
}

#[tokio::test]
async fn a_turn_is_stopped() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let _held = world.call().await;
    peer.say(json!({ "type": "chat.stop", "conversationId": "c" })).await;
    let events = peer.events_until("turn-sealed").await;
    assert_eq!(reason(&events), "aborted");
    assert!(!kinds(&events).contains(&"error"));
}

#[tokio::test]
async fn a_wait_is_ended() {
    let mut world = world().await;
    let mut peer = waiting(&mut world).await;
    peer.say(json!({ "type": "retry.abort", "conversationId": "c" })).await;
    let events = peer.events_until("turn-sealed").await;
    let ended = events.iter().find(|event| event["type"] == "retry-ended").unwrap();
    assert_eq!(ended["outcome"], "cancelled");
}

#[tokio::test]
async fn a_wait_is_skipped() {
    let mut world = world().await;
    let mut peer = waiting(&mut world).await;
    peer.say(json!({ "type": "retry.now", "conversationId": "c" })).await;
    world.call().await.answer("Hello");
    assert_eq!(text(&peer.events_until("turn-sealed").await), "Hello");
}

#[tokio::test]
async fn retrying_is_turned_off_for_one_and_for_all() {
    for id in [Value::Null, json!("c")] {
        let mut world = world().await;
        let mut peer = Peer::connect(world.address).await;
        peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
        let call = world.call().await;
        peer.say(json!({ "type": "retry.set", "conversationId": id, "enabled": false })).await;
        peer.sync().await;
        call.overloaded();
        let events = peer.events_until("turn-sealed").await;
        assert_eq!(reason(&events), "error");
        assert!(!kinds(&events).contains(&"provider-retry"));
    }
}

/// Returns what this peer receives, without events, until all its commands are answered.
async fn told(peer: &mut Peer) -> Vec<Value> {
    peer.say(json!({ "type": "chat.stop", "conversationId": "nowhere" })).await;
    let mut told = Vec::new();
    loop {
        let message = peer.hear().await;
        match message["type"].as_str() {
            Some("chat.error") if message["conversationId"] == "nowhere" => return told,
            Some("retry.settingsChanged") => told.push(message),
            _ => {}
        }
    }
}

#[tokio::test]
async fn settings_hold_from_the_next_turn_on_and_those_who_asked_are_told() {
    let mut world = world().await;
    let [mut peer, mut plain] = [Peer::connect(world.address).await, Peer::connect(world.address).await];
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": true }))
        .await;
    world.call().await.answer("Hello");
    peer.events_until("turn-sealed").await;
    plain.say(json!({ "type": "chat.subscribe", "conversationId": "c" })).await;
    plain.sync().await;
    let figures = json!({ "preset": "interactive", "baseDelayMs": 7_000, "maxDelayMs": -1 });
    let mut set = figures.clone();
    set["type"] = json!("retry.set");
    plain.say(set).await;
    plain.say(json!({ "type": "retry.set", "conversationId": "c", "maxRetries": 9, "enabled": true })).await;
    plain.say(json!({ "type": "retry.set", "conversationId": "c", "enabled": null })).await;
    assert!(told(&mut plain).await.is_empty(), "who did not ask for extensions is told nothing new");
    let changes = told(&mut peer).await;
    let [global, first, second] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(global["set"], json!({ "preset": "interactive", "baseDelayMs": 7_000, "maxDelayMs": 0 }));
    assert_eq!((&global["conversationId"], &global["effective"]["maxRetries"]), (&Value::Null, &json!(3)));
    assert_eq!((&first["conversationId"], &first["set"]["enabled"]), (&json!("c"), &json!(true)));
    assert_eq!(second["set"], json!({ "maxRetries": 9 }));
    assert_eq!(second["effective"]["baseDelayMs"], 7_000);
    for (retry, wait) in [(Value::Null, 7_000), (json!({ "baseDelayMs": 11 }), 11)] {
        peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "retry": retry }))
            .await;
        world.call().await.overloaded();
        let events = peer.events_until("provider-retry").await;
        let event = events.last().unwrap();
        assert_eq!((&event["delayMs"], &event["maxAttempts"]), (&json!(wait), &json!(9)));
        peer.say(json!({ "type": "chat.stop", "conversationId": "c" })).await;
        peer.events_until("turn-sealed").await;
    }
    peer.say(
        json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "retry": { "jitter": 2 } }),
    )
    .await;
    let refusal = loop {
        let message = peer.hear().await;
        if message["type"] == "chat.error" {
            break message;
        }
    };
    assert_eq!(refusal["message"], "retry settings: jitter is 2: write a fraction of the wait, from 0 to 1");
}

#[tokio::test]
async fn a_wait_ends_when_its_conversation_is_told_not_to_retry() {
    let mut world = world().await;
    let mut peer = waiting(&mut world).await;
    peer.say(json!({ "type": "retry.set", "conversationId": "c", "enabled": false })).await;
    let events = peer.events_until("turn-sealed").await;
    let ended = events.iter().find(|event| event["type"] == "retry-ended").unwrap();
    assert_eq!((&ended["outcome"], reason(&events)), (&json!("cancelled"), &json!("aborted")));
}

#[tokio::test]
async fn a_queued_message_is_the_next_turn_unless_it_is_taken_back() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": true }))
        .await;
    let call = world.call().await;
    for (id, text) in [("m1", "wrong"), ("m2", "right")] {
        peer.say(json!({ "type": "chat.queue", "conversationId": "c", "text": text, "messageId": id })).await;
    }
    peer.say(json!({ "type": "chat.queue.cancel", "conversationId": "c", "messageId": "m1" })).await;
    let mut queue = Value::Null;
    while queue != json!([{ "messageId": "m2", "text": "right" }]) {
        queue = peer.events_until("queue-changed").await.pop().unwrap()["queue"].clone();
    }
    call.answer("Hello");
    peer.events_until("turn-sealed").await;
    world.call().await.answer("Sure");
    let events = peer.events_until("turn-sealed").await;
    let prompt = events.iter().find(|event| event["type"] == "user-message").unwrap();
    assert_eq!((&prompt["text"], text(&events).as_str()), (&json!("right"), "Sure"));
}

#[tokio::test]
async fn images_model_and_effort_reach_the_provider() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let image = "data:image/png;base64,AA==";
    let send = json!({
        "type": "chat.send", "message": "See", "model": "test/large", "images": [{ "url": image }], "reasoningEffort": "high",
    });
    peer.say(send).await;
    let call = world.call().await;
    assert_eq!(call.request.model, "large");
    assert_eq!(call.request.reasoning_effort.as_deref(), Some("high"));
    assert!(format!("{:?}", call.request.messages).contains(image));
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_the_socket_goes_on() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    let long = "x".repeat(2000);
    let table = [
        (
            json!({ "type": "chat.send", "conversationId": "c", "message": "again" }),
            Some("c"),
            "busy with a turn",
        ),
        (json!({ "type": "chat.send", "message": "Hi", "model": "no/such" }), None, "test/small, test/large"),
        (json!({ "type": "chat.send", "message": "Hi", "model": long }), None, "test/small, test/large"),
        (json!({ "type": "chat.send", "message": " " }), None, "it is empty"),
        (json!({ "type": "chat.send", "conversationId": "a b", "message": "Hi" }), None, "not valid"),
        (json!({ "type": "chat.send", "conversationId": long, "message": "Hi" }), None, "not valid"),
        (json!({ "type": "chat.send", "message": "x", "images": [{ "url": "file:///x" }] }), None, "image 0"),
        (
            json!({ "type": "chat.send", "conversationId": "c" }),
            Some("c"),
            "chat.send: missing field `message`",
        ),
        (json!({ "type": "chat.send", "conversationId": "a b" }), None, "missing field `message`"),
        (
            json!({ "type": "chat.send", "message": "Hi", "extensions": long }),
            None,
            "chat.send: expected true or false, got a string",
        ),
        (json!({ "type": "chat.subscribe", "conversationId": "x" }), Some("x"), "there is no conversation x"),
        (
            json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": "-1" }),
            Some("c"),
            "not a valid cursor",
        ),
        (
            json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": "1e3" }),
            Some("c"),
            "not a valid cursor",
        ),
        (
            json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": long }),
            Some("c"),
            "not a valid cursor",
        ),
        (json!({ "type": "chat.subscribe", "conversationId": 7 }), None, "chat.subscribe: invalid type"),
        (json!({ "type": "chat.queue", "conversationId": "x", "text": "y" }), Some("x"), "no conversation x"),
        (json!({ "type": "chat.queue", "conversationId": "c", "text": "" }), Some("c"), "it is empty"),
        (
            json!({ "type": "chat.queue.cancel", "conversationId": "c" }),
            Some("c"),
            "missing field `messageId`",
        ),
        (json!({ "type": "chat.stop", "conversationId": "x" }), Some("x"), "there is no conversation x"),
        (json!({ "type": "retry.abort", "conversationId": "x" }), Some("x"), "there is no conversation x"),
        (json!({ "type": "retry.now", "conversationId": "x" }), Some("x"), "there is no conversation x"),
        (
            json!({ "type": "retry.set", "conversationId": "x", "enabled": true }),
            Some("x"),
            "no conversation x",
        ),
        (json!({ "type": "retry.set", "enable": true }), None, "no setting is named"),
        (
            json!({ "type": "retry.set", "maxRetries": "many" }),
            None,
            "retry.set: maxRetries must be a whole number, or null to inherit it",
        ),
        (
            json!({ "type": "retry.set", "conversationId": "c", "baseDelayMs": 0, "preset": "interactive" }),
            Some("c"),
            "baseDelayMs is 0: write the first wait in milliseconds",
        ),
    ];
    for (command, id, why) in table {
        peer.say(command.clone()).await;
        let mut answer = peer.hear().await;
        while answer["type"] == "chat.delta" {
            answer = peer.hear().await;
        }
        assert_eq!(
            (&answer["type"], answer["conversationId"].as_str()),
            (&json!("chat.error"), id),
            "{command}"
        );
        let said = answer["message"].as_str().unwrap();
        assert!(said.contains(why) && said.len() <= 1024, "{command}: {said}");
    }
    call.answer("Hello");
    assert_eq!(text(&peer.events_until("turn-sealed").await), "Hello");
}

#[tokio::test]
async fn a_message_that_is_not_queued_is_named() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    let long = "x".repeat(129);
    for (id, named) in [(Some("m1"), Some("m1")), (None, None), (Some(&*long), None)] {
        peer.say(json!({ "type": "chat.queue", "conversationId": "c", "text": "", "messageId": id })).await;
        let mut answer = peer.hear().await;
        while answer["type"] == "chat.delta" {
            answer = peer.hear().await;
        }
        assert_eq!(
            (&answer["type"], answer["messageId"].as_str()),
            (&json!("chat.error"), named),
            "{answer}"
        );
    }
    call.answer("Hello");
    peer.events_until("turn-sealed").await;
}

#[tokio::test]
async fn what_is_no_command_is_an_error_and_the_socket_goes_on() {
    let world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let deep = "[".repeat(100_000);
    let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(100_000));
    let table = [
        ("", "not JSON"),
        ("hello", "not JSON"),
        ("{\"type\":\"chat.send\"", "not JSON"),
        ("{\"type\":\"chat.stop\"} {}", "not JSON"),
        (&deep, "not JSON"),
        ("[]", "string field \"type\""),
        ("null", "string field \"type\""),
        ("{}", "string field \"type\""),
        ("{\"type\":7}", "string field \"type\""),
        ("{\"type\":\"chat.delta\"}", "unknown command type \"chat.delta\"; known types: chat.send"),
        (&long, "unknown command type"),
    ];
    for (frame, why) in table {
        peer.send(Message::text(frame)).await;
        let answer = peer.hear().await;
        let said = answer["message"].as_str().unwrap();
        assert!(answer["type"] == "error" && said.contains(why) && said.len() <= 1024, "{answer}");
    }
    peer.send(Message::binary(&b"{\"type\":\"chat.stop\"}"[..])).await;
    assert!(peer.hear().await["message"].as_str().unwrap().contains("text frames"));
    assert_eq!(Command::TYPES.len(), 12, "a new command belongs into these tests");
}

#[tokio::test]
async fn controls_of_a_conversation_at_rest_change_nothing() {
    let mut world = world().await;
    let mut peer = waiting(&mut world).await;
    world.clock.advance(Duration::from_secs(5));
    world.call().await.answer("Hello");
    peer.events_until("turn-sealed").await;
    for kind in ["chat.stop", "retry.abort", "retry.now", "chat.unsubscribe", "chat.unsubscribe"] {
        peer.say(json!({ "type": kind, "conversationId": "c" })).await;
    }
    peer.say(json!({ "type": "chat.queue.cancel", "conversationId": "c", "messageId": "m" })).await;
    assert_eq!(peer.answer_to(json!({ "type": "?" })).await["type"], "error");
}
