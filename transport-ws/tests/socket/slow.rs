//! The cost of a non-reading peer's commands for others.

use std::sync::Arc;

use everturn_transport_ws::{SocketLimits, router};
use serde_json::json;
use tokio::{
    sync::Semaphore,
    task::yield_now,
    time::{Duration, advance},
};

use crate::{
    limit::flood,
    peer::Peer,
    storage::{Mishap, Storage},
    world::{World, still_time},
};

async fn serve() -> (World, Arc<Storage>) {
    let storage = Storage::new(|_| Mishap::Nothing);
    let journal = storage.clone();
    let world =
        World::serve_from(journal, |orchestrator, _| router(orchestrator, SocketLimits::default())).await;
    (world, storage)
}

fn send(id: &str) -> serde_json::Value {
    json!({ "type": "chat.send", "conversationId": id, "message": "Hi" })
}

/// Far more executor turns than anything takes here.
async fn ages() {
    for _ in 0..1_000_000 {
        yield_now().await;
    }
}

#[tokio::test]
async fn a_command_of_a_slow_reader_goes_on_though_an_answer_waits() {
    let (mut world, storage) = serve().await;
    let mut slow = Peer::connect_narrow(world.address).await;
    slow.say(send("c")).await;
    world.call().await.answer("Hello");
    slow.events_until("turn-sealed").await;
    // It watches, and stops reading.
    flood(&mut world).await;
    let (gate, loads) = (Arc::new(Semaphore::new(0)), storage.loads());
    *storage.held.lock().unwrap() = Some(gate.clone());
    // The answer to the invalid command waits behind all that, and the load waits for the journal.
    let subscribe = json!({ "type": "chat.subscribe", "conversationId": "cold" });
    slow.say_all([subscribe, json!({ "type": "?" })]).await;
    while storage.loads() == loads {
        yield_now().await;
    }
    for _ in 0..1000 {
        yield_now().await;
    }
    gate.add_permits(1);
    // Each conversation is loaded only once at a time.
    let mut other = Peer::connect(world.address).await;
    other.say(send("cold")).await;
    tokio::select! {
        call = world.call() => call.answer("Yes"),
        () = ages() => panic!("it waits for a command of the slow reader"),
    }
    other.events_until("turn-sealed").await;
}

#[tokio::test]
async fn a_command_that_never_ends_is_given_up_a_while_after_its_socket() {
    still_time();
    let (mut world, storage) = serve().await;
    let mut peer = Peer::connect(world.address).await;
    *storage.held.lock().unwrap() = Some(Arc::new(Semaphore::new(0)));
    peer.say(send("c")).await;
    while storage.loads() == 0 {
        yield_now().await;
    }
    let mut other = Peer::connect(world.address).await;
    other.say(send("c")).await;
    advance(Duration::from_secs(10)).await;
    other.sync().await;
    assert_eq!(storage.loads(), 1, "the other one does not wait");
    drop(peer);
    let time = async {
        loop {
            advance(Duration::from_secs(1)).await;
            yield_now().await;
        }
    };
    tokio::select! {
        call = world.call() => call.answer("Yes"),
        () = time => unreachable!("passes for ever"),
    }
    other.events_until("turn-sealed").await;
}
