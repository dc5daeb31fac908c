//! Commands of one conversation sent without waiting for answers take effect in order.

use std::time::Duration;

use everturn_transport_ws::{SocketLimits, router};
use everturn_wire::Value;
use serde_json::json;

use crate::{
    peer::{Peer, kinds, text},
    storage::{Mishap, Storage},
    world,
    world::World,
};

fn send(extensions: bool) -> Value {
    json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": extensions })
}

fn subscribe(cursor: &str) -> Value {
    json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": cursor })
}

fn unsubscribe() -> Value {
    json!({ "type": "chat.unsubscribe", "conversationId": "c" })
}

fn queued(kind: &str) -> Value {
    json!({ "type": kind, "conversationId": "c", "text": "And", "messageId": "m" })
}

fn stop() -> Value {
    json!({ "type": "chat.stop", "conversationId": "c" })
}

/// Returns a peer that watches a conversation and has seen a turn of it.
async fn watching(world: &mut World) -> Peer {
    let mut peer = Peer::connect(world.address).await;
    peer.say(send(false)).await;
    world.call().await.answer("One");
    peer.events_until("turn-sealed").await;
    peer
}

/// Returns what the peer receives until all commands of the conversation so far have been executed.
async fn told_until_done(peer: &mut Peer) -> Vec<Value> {
    // A command that is refused when its turn comes.
    peer.say(subscribe("no cursor")).await;
    let mut told = Vec::new();
    loop {
        match peer.hear().await {
            refused if refused["type"] == "chat.error" => return told,
            event => told.push(event["event"].clone()),
        }
    }
}

/// Runs a turn, and returns whether the peer received any of it.
async fn is_told(world: &mut World, peer: &mut Peer) -> bool {
    let mut other = Peer::connect(world.address).await;
    other.say(send(false)).await;
    world.call().await.answer("More");
    other.events_until("turn-sealed").await;
    peer.answer_to(json!({ "type": "?" })).await["type"] != "error"
}

#[tokio::test]
async fn a_send_changes_whether_extension_events_are_sent() {
    let mut world = world().await;
    let mut peer = watching(&mut world).await;
    for extensions in [true, false, true] {
        peer.say(send(extensions)).await;
        world.call().await.overloaded();
        let mut events = peer.events_until("provider-retry").await;
        world.clock.advance(Duration::from_secs(5));
        world.call().await.answer("Two");
        events.extend(peer.events_until("turn-sealed").await);
        assert_eq!(kinds(&events)[0], "user-message");
        assert_eq!((kinds(&events).contains(&"retry-ended"), &*text(&events)), (extensions, "Two"));
    }
}

#[tokio::test]
async fn an_unsubscribe_behind_a_send_that_changes_the_extensions_holds() {
    let mut world = world().await;
    let mut peer = watching(&mut world).await;
    peer.say_all([send(true), unsubscribe()]).await;
    let call = world.call().await;
    told_until_done(&mut peer).await;
    let mut other = Peer::connect(world.address).await;
    other.say(subscribe("0")).await;
    call.answer("Two");
    for _ in 0..2 {
        other.events_until("turn-sealed").await;
    }
    assert!(!is_told(&mut world, &mut peer).await);
}

#[tokio::test]
async fn a_subscribe_behind_a_send_that_changes_the_extensions_holds() {
    let mut world = world().await;
    let mut peer = watching(&mut world).await;
    peer.say_all([send(true), subscribe("0")]).await;
    let call = world.call().await;
    let mut events = told_until_done(&mut peer).await;
    call.answer("Two");
    while !text(&events).contains("Two") {
        events.push(peer.event().await);
    }
    assert_eq!(text(&events), "OneTwo");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsubscribe_behind_a_subscribe_holds_whichever_thread_is_quicker() {
    let slow = Storage::new(|_| Mishap::Slow(10));
    let mut world =
        World::serve_from(slow, |orchestrator, _| router(orchestrator, SocketLimits::default())).await;
    let mut peer = watching(&mut world).await;
    let mut other = Peer::connect(world.address).await;
    other.say(send(false)).await;
    let call = world.call().await;
    for _ in 0..30 {
        // All others wait for the first one, which waits for the journal.
        let pairs = (0..16).flat_map(|_| [subscribe("18446744073709551615"), unsubscribe()]);
        peer.say_all([queued("chat.queue")].into_iter().chain(pairs).chain([queued("chat.queue.cancel")]))
            .await;
        told_until_done(&mut peer).await;
        call.text("More");
        other.events_until("text-delta").await;
        assert_eq!(peer.answer_to(json!({ "type": "?" })).await["type"], "error");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_overtake_the_message_before_it() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    for _ in 0..30 {
        peer.say(send(true)).await;
        let _held = world.call().await;
        // No command is running that the message would wait for.
        told_until_done(&mut peer).await;
        peer.say_all([queued("chat.queue"), stop()]).await;
        let stopped = peer.events_until("turn-sealed").await;
        assert!(kinds(&stopped).contains(&"queue-changed"), "{stopped:?}");
        world.call().await.answer("And that");
        peer.events_until("turn-sealed").await;
    }
}
