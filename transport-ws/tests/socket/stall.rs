//! Commands that wait for a stalled journal.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use everturn_transport_ws::{SocketLimits, router};
use serde_json::json;
use tokio::{
    sync::Semaphore,
    task::yield_now,
    time::{Duration, advance},
};

use crate::{
    peer::Peer,
    storage::{Mishap, Storage},
    world::{World, still_time},
};

/// A server whose journal can delay appends.
struct Stalling {
    world: World,
    storage: Arc<Storage>,
    /// How many of the next appends wait.
    waiting: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Stalling {
    async fn with(limits: SocketLimits) -> Self {
        let (waiting, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (left, opens) = (waiting.clone(), gate.clone());
        let storage = Storage::new(move |_| {
            match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
                Ok(_) => Mishap::Waits(opens.clone()),
                Err(_) => Mishap::Nothing,
            }
        });
        let journal = storage.clone();
        let world = World::serve_from(journal, |orchestrator, _| router(orchestrator, limits)).await;
        Self { world, storage, waiting, gate }
    }

    /// Sends a command, and returns once it waits for the journal.
    async fn stall(&self, peer: &mut Peer, command: serde_json::Value) {
        let appends = self.storage.appends();
        self.waiting.store(1, Ordering::SeqCst);
        peer.say(command).await;
        while self.storage.appends() == appends {
            yield_now().await;
        }
    }
}

fn send(id: &str) -> serde_json::Value {
    json!({ "type": "chat.send", "conversationId": id, "message": "Hi" })
}

fn queue(id: &str) -> serde_json::Value {
    json!({ "type": "chat.queue", "conversationId": id, "text": "And" })
}

fn stop(id: &str) -> serde_json::Value {
    json!({ "type": "chat.stop", "conversationId": id })
}

#[tokio::test]
async fn a_stalled_command_holds_up_no_other_conversation_and_no_ping() {
    let mut stalling = Stalling::with(SocketLimits::default()).await;
    let mut peer = Peer::connect(stalling.world.address).await;
    peer.say(send("stuck")).await;
    let stuck = stalling.world.call().await;
    peer.say(send("free")).await;
    let free = stalling.world.call().await;
    stalling.stall(&mut peer, queue("stuck")).await;
    free.text("Hello");
    peer.events_until("text-delta").await;
    let refused = peer.answer_to(stop("nowhere")).await;
    assert!(refused["message"].as_str().unwrap().contains("nowhere"), "{refused}");
    peer.say(stop("free")).await;
    let events = peer.events_until("turn-sealed").await;
    assert!(events.iter().any(|event| event["type"] == "done" && event["reason"] == "aborted"), "{events:?}");
    // The pending command is executed all the same.
    stalling.gate.add_permits(1);
    stuck.answer("Done");
    stalling.world.call().await.answer("And that");
}

#[tokio::test]
async fn commands_of_one_conversation_keep_their_order() {
    let mut stalling = Stalling::with(SocketLimits::default()).await;
    let mut peer = Peer::connect(stalling.world.address).await;
    // Before the turn has begun, there is no conversation to send anything to.
    stalling.stall(&mut peer, send("c")).await;
    peer.say(queue("c")).await;
    peer.say(stop("c")).await;
    stalling.gate.add_permits(1);
    let events = peer.events_until("turn-sealed").await;
    assert!(events.iter().any(|event| event["type"] == "done" && event["reason"] == "aborted"), "{events:?}");
    // The queued message is the next turn. The first turn may have called its provider, too.
    let answers = async {
        loop {
            stalling.world.call().await.answer("Yes");
        }
    };
    let events = tokio::select! {
        events = peer.events_until("turn-sealed") => events,
        () = answers => unreachable!("answers for ever"),
    };
    assert!(events.iter().any(|event| event["type"] == "done" && event["reason"] == "stop"), "{events:?}");
}

#[tokio::test]
async fn a_command_goes_on_when_its_socket_has_ended() {
    let mut stalling = Stalling::with(SocketLimits::default()).await;
    let mut peer = Peer::connect(stalling.world.address).await;
    stalling.stall(&mut peer, send("c")).await;
    peer.say(queue("c")).await;
    // Both were read once this is answered.
    peer.say(json!({ "type": "x" })).await;
    peer.hear().await;
    drop(peer);
    stalling.gate.add_permits(1);
    stalling.world.call().await.answer("One");
    stalling.world.call().await.answer("Two");
}

#[tokio::test]
async fn too_many_commands_are_refused_and_a_stop_is_not() {
    still_time();
    let mut stalling = Stalling::with(SocketLimits { commands: 2, ..SocketLimits::default() }).await;
    let mut peer = Peer::connect(stalling.world.address).await;
    for id in ["a", "b", "c"] {
        peer.say(send(id)).await;
        let call = stalling.world.call().await;
        if id == "c" {
            std::mem::forget(call);
        } else {
            call.answer("Hello");
            peer.events_until("turn-sealed").await;
        }
    }
    for id in ["a", "b"] {
        stalling.stall(&mut peer, send(id)).await;
    }
    peer.say(queue("c")).await;
    peer.say(stop("c")).await;
    for _ in 0..1000 {
        yield_now().await;
    }
    advance(Duration::from_secs(2)).await;
    let mut refused = peer.hear().await;
    while refused["type"] == "chat.delta" {
        refused = peer.hear().await;
    }
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("too many commands")), "{refused}");
    let events = peer.events_until("turn-sealed").await;
    assert!(events.iter().any(|event| event["type"] == "done" && event["reason"] == "aborted"), "{events:?}");
    stalling.gate.add_permits(2);
}

#[tokio::test]
async fn too_many_bytes_are_refused_and_a_stop_is_not() {
    still_time();
    let limits = SocketLimits { command: 1000, ..SocketLimits::default() };
    let mut stalling = Stalling::with(limits).await;
    let mut peer = Peer::connect(stalling.world.address).await;
    peer.say(send("c")).await;
    let _held = stalling.world.call().await;
    peer.events_until("turn-start").await;
    for id in ["a", "b"] {
        let mut long = send(id);
        let more = limits.command - long.to_string().len();
        long["message"] = format!("Hi{}", "!".repeat(more)).into();
        stalling.stall(&mut peer, long).await;
    }
    peer.say(queue("c")).await;
    peer.say(stop("c")).await;
    for _ in 0..1000 {
        yield_now().await;
    }
    advance(Duration::from_secs(2)).await;
    let refused = peer.hear().await;
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("too many commands")), "{refused}");
    let events = peer.events_until("turn-sealed").await;
    assert!(events.iter().any(|event| event["type"] == "done" && event["reason"] == "aborted"), "{events:?}");
    stalling.gate.add_permits(2);
}
