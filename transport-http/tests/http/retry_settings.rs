//! Reading and changing retry settings.

use everturn_wire::Value;
use hyper::StatusCode;
use serde_json::json;

use crate::{
    client::{get, patch, post},
    world,
    world::World,
};

async fn changed(world: &World, path: &str, change: Value) -> Value {
    let answer = patch(world.address, path, change).await;
    assert_eq!(answer.status, StatusCode::OK);
    answer.json().await
}

async fn read(world: &World, path: &str) -> Value {
    get(world.address, path).await.json().await
}

/// Makes a turn of conversation `c` fail once. Returns its wait, in milliseconds.
async fn wait(world: &mut World, mut message: Value) -> u64 {
    message["conversationId"] = json!("c");
    message["message"] = json!("Hi");
    let mut stream = post(world.address, "/chat", message).await;
    world.call().await.overloaded();
    let event = loop {
        let line = stream.line().await.unwrap();
        if line.contains("provider-retry") {
            break serde_json::from_str::<Value>(&line).unwrap();
        }
    };
    post(world.address, "/conversations/c/stop", Value::Null).await;
    while stream.line().await.is_some() {}
    event["delayMs"].as_u64().unwrap()
}

const GLOBAL: &str = "/retry";
const OF_C: &str = "/conversations/c/retry";

#[tokio::test]
async fn settings_are_changed_reset_and_obeyed_scope_by_scope() {
    let mut world = world().await;
    let patient = json!({ "preset": "patient", "enabled": true, "afterContent": "keep", "quota": "fail" });
    let usual = json!({ "set": {}, "effective": patient });
    assert_eq!(read(&world, GLOBAL).await, usual);
    assert_eq!(wait(&mut world, json!({})).await, 5_000);
    let state = changed(&world, GLOBAL, json!({ "preset": "interactive", "maxRetries": 2 })).await;
    let effective = json!({
        "preset": "interactive", "enabled": true, "maxRetries": 2, "baseDelayMs": 2_000, "maxDelayMs": 300_000,
        "jitter": 0.0, "revert": "cooldown-expiry", "afterContent": "keep", "quota": "fail",
    });
    assert_eq!(state, json!({ "set": { "preset": "interactive", "maxRetries": 2 }, "effective": effective }));
    assert_eq!(wait(&mut world, json!({})).await, 2_000);
    let chains = json!({ "fallbackChains": { "test/small": ["test/large"] } });
    assert_eq!(
        changed(&world, GLOBAL, chains.clone()).await["set"]["fallbackChains"],
        chains["fallbackChains"]
    );
    assert_eq!(read(&world, OF_C).await["effective"]["fallbackChains"], chains["fallbackChains"]);
    changed(&world, GLOBAL, json!({ "fallbackChains": null })).await;
    let state = changed(&world, OF_C, json!({ "baseDelayMs": 30, "afterContent": "rewind" })).await;
    let set = json!({ "baseDelayMs": 30, "afterContent": "rewind" });
    assert_eq!((&state["conversationId"], &state["set"]), (&json!("c"), &set));
    assert_eq!(read(&world, OF_C).await, state);
    assert_eq!(wait(&mut world, json!({})).await, 30);
    assert_eq!(wait(&mut world, json!({ "retry": { "baseDelayMs": 40 } })).await, 40);
    let state = changed(&world, OF_C, json!({ "baseDelayMs": null, "afterContent": null })).await;
    assert_eq!((&state["set"], &state["effective"]), (&json!({}), &effective));
    assert_eq!(changed(&world, GLOBAL, json!({ "preset": null, "maxRetries": null })).await, usual);
    changed(&world, OF_C, json!({ "enabled": false })).await;
    assert_eq!(read(&world, "/conversations/c/status").await["autoRetry"], false);
}

#[tokio::test]
async fn a_turn_that_is_asked_again_takes_settings_of_its_own() {
    let mut world = world().await;
    assert_eq!(wait(&mut world, json!({})).await, 5_000);
    let path = "/conversations/c/retry";
    let refused = json!({ "seq": 1, "retry": { "jitter": 0.5 } });
    let answer = post(world.address, path, refused).await;
    assert_eq!(answer.status, 400);
    assert!(answer.error().await.contains("jitter has no effect"));
    let retry = json!({ "preset": "interactive", "baseDelayMs": 70 });
    let started = post(world.address, path, json!({ "seq": 1, "message": "Hello", "retry": retry })).await;
    assert_eq!(started.status, StatusCode::OK);
    world.call().await.overloaded();
    let state = loop {
        let status = read(&world, "/conversations/c/status").await;
        if status["retry"]["delayMs"].is_u64() {
            break status["retry"]["delayMs"].clone();
        }
    };
    assert_eq!(state, 70);
}

#[tokio::test]
async fn what_cannot_be_obeyed_is_refused_with_what_to_do() {
    let mut world = world().await;
    assert_eq!(wait(&mut world, json!({})).await, 5_000);
    for (path, change, status, why) in [
        (
            GLOBAL,
            json!({ "maxRetries": -1 }),
            422,
            "maxRetries must be a whole number, or null to inherit it",
        ),
        (OF_C, json!([1]), 422, "an object with retry settings"),
        (OF_C, json!({ "enable": true }), 400, "no setting is named"),
        (OF_C, json!({ "maxDelayMs": 1e12 }), 400, "maxDelayMs is 1000000000000: write the longest wait"),
        (GLOBAL, json!({ "jitter": 0.5 }), 400, "jitter has no effect with the preset"),
        (
            GLOBAL,
            json!({ "fallbackChains": { "test/small": ["x/y"] } }),
            400,
            "is not a model or route of this server; known: test/small",
        ),
        (
            OF_C,
            json!({ "fallbackChains": [1] }),
            422,
            "fallbackChains must be an object with a list of names",
        ),
        ("/conversations/nowhere/retry", json!({ "enabled": true }), 404, "no conversation nowhere"),
    ] {
        let answer = patch(world.address, path, change.clone()).await;
        assert_eq!(answer.status.as_u16(), status, "{change}");
        let error = answer.error().await;
        assert!(error.contains(why), "{change}: {error}");
    }
    assert_eq!(get(world.address, "/conversations/nowhere/retry").await.status, StatusCode::NOT_FOUND);
    let message = json!({ "message": "Hi", "retry": { "preset": "lunar" } });
    let answer = post(world.address, "/chat", message).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.error().await.contains("preset must be one of the words: patient"));
}
