//! Several servers share their conversations over real NATS servers, and are killed and frozen meanwhile.

mod leave;
mod list;
mod maintenance;
mod park;
mod person;
mod provider;
mod roll;
mod usage;
mod world;

use std::{env, time::Duration};

use everturn_sim::nats;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::{
    client::{get, post, send, sse},
    home::DEADLINE,
};
use world::{Size, World};

/// Environment variable: number of turns of the long test. It runs only if this is set.
const TURNS: &str = "EVERTURN_CLUSTER_TURNS";

/// Environment variable: its seed.
const SEED: &str = "EVERTURN_CLUSTER_SEED";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node"]
async fn turns_survive_the_end_of_their_servers() {
    let Some(program) = nats::program() else { return };
    let calm = World::start(&program, Size { nats: 1, turns: 24, faults: 0 }, 1).await.run().await;
    let disturbed = World::start(&program, Size { nats: 1, turns: 24, faults: 3 }, 1).await.run().await;
    assert_eq!(disturbed, calm, "faults change nothing but how a tool ends");
}

/// Run it by hand: `EVERTURN_CLUSTER_TURNS=300 cargo test -p everturn --test everturn cluster::many -- --ignored
/// --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node"]
async fn many_turns_survive_the_end_of_any_servers() {
    let Some(turns) = env::var(TURNS).ok().and_then(|turns| turns.parse().ok()) else { return };
    let Some(program) = nats::program() else { return };
    let seed = env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let calm = World::start(&program, Size { nats: 3, turns, faults: 0 }, seed).await.run().await;
    let disturbed =
        World::start(&program, Size { nats: 3, turns, faults: turns / 10 }, seed).await.run().await;
    assert_eq!(disturbed, calm, "faults change nothing but how a tool ends");
}

#[tokio::test]
async fn a_turn_is_followed_and_commanded_at_any_server() {
    let Some(program) = nats::program() else { return };
    let world = World::start(&program, Size { nats: 1, turns: 0, faults: 0 }, 0).await;
    let [a, b, c] = world.servers() else { panic!("three servers") };
    let nodes = get(a, "/cluster").await.json().await;
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 3, "{nodes}");
    // The provider refuses this one for a minute.
    let message = json!({ "conversationId": "waits", "message": "wait" });
    let mut asked = post(a, "/chat", &message).await;
    while !asked.line().await.unwrap().contains("provider-retry") {}
    let state = get(b, "/conversations/waits/status").await.json().await;
    assert_eq!(state["retry"]["phase"], "waiting", "{state}");
    let events = get(c, "/conversations/waits/events?cursor=0").await;
    let now = post(b, "/conversations/waits/retry/now", &json!({})).await;
    assert_eq!(now.status, 200);
    let events = timeout(DEADLINE, sse(events)).await.unwrap();
    assert!(events.iter().any(|event| event["delta"] == "At last."), "{events:?}");

    let busy = json!({ "conversationId": "waits", "message": "wait" });
    let mut asked = post(c, "/chat", &busy).await;
    while !asked.line().await.unwrap().contains("provider-retry") {}
    let refused = post(a, "/chat", &busy).await;
    assert_eq!(refused.status, 409);
    let stopped = post(a, "/conversations/waits/stop", &json!({})).await.json().await;
    assert_eq!(stopped["abortedTurn"], true, "{stopped}");
    let deleted = send(b, hyper::Method::DELETE, "/conversations/waits", &[], String::new()).await;
    assert_eq!(deleted.status, 200);
    for server in [a, b, c] {
        assert_eq!(get(server, "/conversations/waits").await.status, 404);
    }
}

#[tokio::test]
async fn a_command_on_a_killed_or_frozen_server_is_carried_out_by_another() {
    let Some(program) = nats::program() else { return };
    for is_frozen in [false, true] {
        let mut world = World::start(&program, Size { nats: 1, turns: 0, faults: 0 }, 0).await;
        let message = json!({ "conversationId": "waits", "message": "wait" });
        let mut asked = post(&world.servers()[0], "/chat", &message).await;
        while !asked.line().await.unwrap().contains("provider-retry") {}
        if is_frozen {
            world.freeze(0).await;
        } else {
            world.kill(0).await;
        }
        let server = &world.servers()[1];
        let events = get(server, "/conversations/waits/events?cursor=0").await;
        let then = Instant::now();
        let now = post(server, "/conversations/waits/retry/now", &json!({})).await;
        assert_eq!(now.status, 200);
        eprintln!("taken over after {:?} (frozen: {is_frozen})", then.elapsed());
        let events: Vec<Value> = timeout(DEADLINE, sse(events)).await.unwrap();
        let sealed = events.iter().filter(|event| event["type"] == "turn-sealed").count();
        assert!(sealed == 1 && events.iter().any(|event| event["delta"] == "At last."), "{events:?}");
        assert!(then.elapsed() < Duration::from_secs(15), "by the command, not when the lease lapsed");
        if is_frozen {
            world.thaw(0).await;
            // It finds that it was replaced.
            let history = get(&world.servers()[0], "/conversations/waits").await.json().await;
            assert_eq!(history["turns"].as_array().unwrap().len(), 1, "{history}");
        }
    }
}

#[tokio::test]
async fn a_limit_found_by_one_server_holds_the_turns_of_others() {
    let Some(program) = nats::program() else { return };
    let world = World::start(&program, Size { nats: 1, turns: 0, faults: 0 }, 0).await;
    let [a, b, _] = world.servers() else { panic!("three servers") };
    let mut limited = post(a, "/chat", &json!({ "conversationId": "a", "message": "wait" })).await;
    while !limited.line().await.unwrap().contains("provider-retry") {}
    // The notice may arrive a moment after the event.
    for n in 0.. {
        assert!(n < 20, "no turn was held");
        let message = format!("held-{n}");
        let mut held = post(b, "/chat", &json!({ "conversationId": message, "message": message })).await;
        let mut refusal = held.line().await.unwrap();
        while !refusal.contains("provider-retry") {
            refusal = held.line().await.unwrap();
        }
        if !refusal.contains("rate_limited") {
            continue;
        }
        assert_eq!(world.calls_of(&message), 0, "{refusal}");
        // The target answers a call of the first server: the turn of the other one need not wait any longer.
        let now = post(a, "/conversations/a/retry/now", &json!({})).await;
        assert_eq!(now.status, 200);
        let next = async { while !held.line().await.unwrap().contains("overloaded") {} };
        timeout(DEADLINE, next).await.unwrap();
        assert!(world.calls_of(&message) > 0);
        return;
    }
}
