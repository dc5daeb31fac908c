//! Messages that a socket receives.

use std::time::Duration;

use everturn_transport_ws::{SocketLimits, router};
use serde_json::json;

use crate::{
    peer::{Peer, kinds, text},
    storage::{Mishap, Storage},
    world,
    world::World,
};

#[tokio::test]
async fn a_message_makes_a_conversation_and_its_sender_sees_the_whole_turn() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    let events = peer.events_until("turn-sealed").await;
    let expected =
        ["user-message", "turn-start", "text-delta", "usage", "step-complete", "done", "turn-sealed"];
    assert_eq!(kinds(&events), expected);
    assert_eq!(text(&events), "Hello");
    assert!(events.iter().all(|event| event["conversationId"] == events[0]["conversationId"]));
}

#[tokio::test]
async fn everyone_is_told_every_status_even_of_what_they_do_not_watch() {
    let mut world = world().await;
    let mut bystander = Peer::connect(world.address).await;
    // A peer that gets an answer is already listening.
    bystander.sync().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let expected = |status: &str| json!({ "type": "conversation.statusChanged", "conversationId": "c", "status": status, "workspaceId": "default" });
    assert_eq!(bystander.hear_status().await, expected("active"));
    world.call().await.answer("Hello");
    assert_eq!(bystander.hear_status().await, expected("idle"));
}

#[tokio::test]
async fn who_comes_during_a_wait_sees_the_turn_from_its_start_in_the_same_bytes() {
    let mut world = world().await;
    let mut first = Peer::connect(world.address).await;
    first
        .say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": true }))
        .await;
    world.call().await.overloaded();
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|frame: &String| frame.contains("provider-retry")) {
        seen.push(first.hear_text().await);
    }
    let mut second = Peer::connect(world.address).await;
    second.say(json!({ "type": "chat.subscribe", "conversationId": "c", "extensions": true })).await;
    let mut seen_late = Vec::new();
    while !seen_late.last().is_some_and(|frame: &String| frame.contains("provider-retry")) {
        seen_late.push(second.hear_text().await);
    }
    world.clock.advance(Duration::from_secs(5));
    world.call().await.answer("Hello");
    for (peer, seen) in [(&mut first, &mut seen), (&mut second, &mut seen_late)] {
        while !seen.last().unwrap().contains("turn-sealed") {
            seen.push(peer.hear_text().await);
        }
    }
    let events = |seen: &[String]| -> Vec<String> {
        seen.iter().filter(|frame| frame.starts_with(r#"{"type":"chat.delta","cursor":""#)).cloned().collect()
    };
    assert_eq!(events(&seen), events(&seen_late));
    assert!(events(&seen).len() >= 8, "{seen:?}");
}

#[tokio::test]
async fn extension_events_are_for_those_who_ask() {
    let mut world = world().await;
    let mut plain = Peer::connect(world.address).await;
    let mut extended = Peer::connect(world.address).await;
    plain.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    extended.say(json!({ "type": "chat.subscribe", "conversationId": "c", "extensions": true })).await;
    call.overloaded();
    extended.events_until("provider-retry").await;
    world.clock.advance(Duration::from_secs(5));
    world.call().await.answer("Hello");
    let extended = extended.events_until("turn-sealed").await;
    let plain = plain.events_until("turn-sealed").await;
    assert!(kinds(&extended).contains(&"retry-ended"), "{extended:?}");
    assert!(
        kinds(&plain).contains(&"provider-retry") && !kinds(&plain).contains(&"retry-ended"),
        "{plain:?}"
    );
}

#[tokio::test]
async fn one_socket_watches_many_conversations() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let mut calls = Vec::new();
    for id in ["a", "b", "c"] {
        peer.say(json!({ "type": "chat.send", "conversationId": id, "message": id })).await;
        calls.push(world.call().await);
    }
    for (call, id) in calls.into_iter().zip(["a", "b", "c"]) {
        call.answer(id);
    }
    let mut said = Vec::new();
    let mut sealed = 0;
    while sealed < 3 {
        let event = peer.event().await;
        if event["type"] == "text-delta" {
            assert_eq!(event["conversationId"], event["delta"]);
            said.push(event["delta"].as_str().unwrap().to_owned());
        }
        sealed += usize::from(event["type"] == "turn-sealed");
    }
    said.sort();
    assert_eq!(said, ["a", "b", "c"]);
}

#[tokio::test]
async fn the_next_turn_comes_once_to_who_watches_already() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    for prompt in ["one", "two", "three"] {
        peer.say(
            json!({ "type": "chat.send", "conversationId": "c", "message": prompt, "extensions": true }),
        )
        .await;
        world.call().await.answer(prompt);
        let events = peer.events_until("turn-sealed").await;
        assert_eq!((&events[0]["type"], &events[0]["text"]), (&json!("user-message"), &json!(prompt)));
        assert_eq!((events.len(), text(&events)), (7, prompt.to_owned()));
    }
}

#[tokio::test]
async fn closing_the_socket_does_not_touch_the_turn() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    call.text("Hel");
    while peer.event().await["type"] != "text-delta" {}
    peer.socket.close(None).await.unwrap();
    drop(peer);
    let mut next = Peer::connect(world.address).await;
    next.say(json!({ "type": "chat.subscribe", "conversationId": "c" })).await;
    while next.event().await["type"] != "text-delta" {}
    call.answer("lo");
    let events = next.events_until("turn-sealed").await;
    assert_eq!(text(&events), "lo");
    let done = events.iter().find(|event| event["type"] == "done").unwrap();
    assert_eq!(done["reason"], "stop");
}

#[tokio::test]
async fn a_turn_that_cannot_be_saved_is_told_so_and_then_its_one_end() {
    let fails_once = Storage::new(|n| if n == 1 { Mishap::Fails } else { Mishap::Nothing });
    let mut world =
        World::serve_from(fails_once, |orchestrator, _| router(orchestrator, SocketLimits::default())).await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hel");
    peer.events_until("text-delta").await;
    let told = peer.hear().await;
    assert_eq!((&told["type"], &told["conversationId"]), (&json!("chat.error"), &json!("c")), "{told}");
    assert!(told["message"].as_str().unwrap().contains("disk full"), "{told}");
    // The peer does nothing, and is told how the turn continues.
    let clock = world.clock.clone();
    tokio::spawn(async move {
        loop {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    });
    world.call().await.answer("Hello");
    let rest = peer.events_until("turn-sealed").await;
    let expected = ["text-delta", "text-delta", "usage", "step-complete", "done", "turn-sealed"];
    assert_eq!(kinds(&rest), expected, "{rest:?}");
    assert_eq!(text(&rest), "\n\n[The answer broke off here. It starts again:]\n\nHello");
}
