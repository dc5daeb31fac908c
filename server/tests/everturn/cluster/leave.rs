//! A planned hand-over: a server is asked to end in the middle of an answer, and another continues it.

use std::time::Duration;

use everturn_sim::nats;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::world::{Size, World};
use crate::{
    client::{get, post},
    home::DEADLINE,
};

#[tokio::test]
async fn a_turn_goes_on_elsewhere_when_its_server_is_asked_to_end() {
    let Some(program) = nats::program() else { return };
    let mut world = World::start(&program, Size { nats: 1, turns: 0, faults: 0 }, 0).await;
    hand_over(&mut world, 0, 0).await;
}

/// Prints how long it takes. Run it by hand: `cargo test -p everturn --test everturn cluster::leave -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "checks nothing else, and prints figures"]
async fn ten_hand_overs() {
    let Some(program) = nats::program() else { return };
    for nats in [1, 3] {
        let mut world = World::start(&program, Size { nats, turns: 0, faults: 0 }, 0).await;
        let mut took = Vec::new();
        for round in 0..10 {
            let at = round % 3;
            took.push(hand_over(&mut world, at, round).await);
            world.replace(at).await;
        }
        took.sort();
        eprintln!("{nats} NATS servers: {took:.0?}");
    }
}

/// Ends the server that drives a turn. Returns how long it takes until a watcher at another sees that the turn continues.
async fn hand_over(world: &mut World, at: usize, round: usize) -> Duration {
    let id = format!("slow-{round}");
    let message = json!({ "conversationId": id, "message": "slow" });
    let mut asked = post(&world.servers()[at], "/chat", &message).await;
    while !asked.line().await.unwrap().contains("text-delta") {}
    let other = (at + 1) % 3;
    let mut events =
        get(&world.servers()[other], &format!("/conversations/{id}/events?cursor=0&extensions=true")).await;
    while !events.line().await.unwrap().contains("text-delta") {}
    let then = Instant::now();
    world.servers()[at].terminate().await;
    let continued = async {
        while !events.line().await.unwrap().contains("step-rewound") {}
        let rewound = then.elapsed();
        while !events.line().await.unwrap().contains("text-delta") {}
        rewound
    };
    let took = timeout(DEADLINE, continued).await.expect("the turn goes on");
    world.ended(at).await;
    let stopped = post(&world.servers()[other], &format!("/conversations/{id}/stop"), &json!({})).await;
    assert_eq!(stopped.status, 200);
    took
}
