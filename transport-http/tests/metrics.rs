//! The metrics of the process, in a separate program because a process has one recorder.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "http/client.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod client;
#[path = "../../transport-ws/tests/socket/puppet.rs"]
#[allow(dead_code, reason = "shared with the tests of the WebSocket transport")]
mod puppet;
#[path = "../../transport-ws/tests/socket/world.rs"]
#[allow(dead_code, reason = "shared with the tests of the WebSocket transport")]
mod world;

use everturn_transport_http::{CallLimits, Metrics, router};
use serde_json::json;

use client::{get, post};
use world::World;

async fn figures(world: &World) -> String {
    let answer = get(world.address, "/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    answer.text().await
}

/// Waits until the metrics have these lines. Connections are counted when they are gone.
async fn shows(world: &World, lines: &[&str]) {
    loop {
        let figures = figures(world).await;
        if lines.iter().all(|line| figures.lines().any(|shown| shown == *line)) {
            return;
        }
    }
}

#[tokio::test]
async fn turns_waits_and_watchers_are_counted() {
    let metrics = Metrics::install().unwrap();
    assert!(Metrics::install().is_err());
    let mut world =
        World::serve(|orchestrator, _| router(orchestrator, CallLimits::default(), metrics)).await;
    let mut stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.overloaded();
    while !stream.line().await.unwrap().contains("provider-retry") {}
    shows(&world, &["everturn_turns_active 1", "everturn_turns_waiting 1", "everturn_subscribers 1"]).await;
    post(world.address, "/conversations/c/retry/now", json!(null)).await;
    world.call().await.answer("Hello");
    stream.text().await;
    let figures = [
        "# TYPE everturn_turns_started_total counter",
        "everturn_turns_started_total 1",
        r#"everturn_turns_sealed_total{reason="stop"} 1"#,
        r#"everturn_retries_scheduled_total{category="overloaded"} 1"#,
        r#"everturn_provider_calls_total{model="test/small"} 2"#,
        r#"everturn_provider_calls_failed_total{model="test/small",category="overloaded"} 1"#,
        r#"everturn_provider_call_seconds_count{model="test/small",outcome="answered"} 1"#,
        r#"everturn_provider_call_seconds_count{model="test/small",outcome="overloaded"} 1"#,
        r#"everturn_retry_wait_seconds_sum{category="overloaded"} 5"#,
        "everturn_turns_active 0",
        "everturn_turns_waiting 0",
        "everturn_subscribers 0",
    ];
    shows(&world, &figures).await;
}
