//! Long calls: stopped, timed out, or kept alive by progress.

use std::time::Duration;

use everturn_mcp::{ServerConfig, Timeouts};
use everturn_wire::EventBody;
use serde_json::json;

use crate::support::{Note, World, called, config, event, python, script};

fn within(idle_ms: u64, total_ms: u64) -> ServerConfig {
    let (idle, total) = (Duration::from_millis(idle_ms), Duration::from_millis(total_ms));
    ServerConfig { timeouts: Timeouts { idle, total, ..Timeouts::default() }, ..config(python(&[])) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_cancels_the_call() {
    let note = Note::new();
    let world = World::up(config(python(&[])), &[("silent", json!({ "place": note.path() }))]).await;
    let (started, mut watched) = world.begin().await;
    note.says(&["begun"]).await;
    assert!(world.orchestrator.stop(&started.conversation_id).await.unwrap());
    while event(&mut watched).await != EventBody::TurnSealed {}
    note.says(&["begun", "cancelled"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_call_is_cancelled() {
    let note = Note::new();
    let calls = [("silent", json!({ "place": note.path() })), ("process", json!({}))];
    let world = World::up(within(3_000, 60_000), &calls).await;
    let called = world.call().await;
    let expected = "(tool failed: the call was silent for 3 s and was cancelled)";
    assert_eq!((called.content.as_str(), called.is_error), (expected, true));
    note.says(&["begun", "cancelled"]).await;
    assert!(!world.call().await.is_error, "the server survives");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_keeps_a_call_alive() {
    let world = World::up(within(2_000, 60_000), &[("busy", json!({ "steps": 30 }))]).await;
    let (_, mut watched) = world.begin().await;
    let called = called(&mut watched).await;
    assert_eq!((called.content.as_str(), called.output.len()), ("well", 30), "{called:?}");
    assert_eq!(called.output[0], "1/30 step 1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_times_out_despite_progress() {
    let world = World::up(within(5_000, 3_000), &[("busy", json!({ "steps": 1000 }))]).await;
    let called = world.call().await;
    assert_eq!(called.content, "(tool failed: the call exceeded 3 s and was cancelled)");
    assert!(called.is_error && called.output.len() >= 2, "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_times_out_however_often_it_asks_for_input() {
    let total = Duration::from_secs(1);
    let timeouts = Timeouts { total, ..Timeouts::default() };
    let server = ServerConfig { timeouts, ..config(script("asks.py", &["slowly"])) };
    let called = World::up(server, &[("ask", json!({}))]).await.call().await;
    assert_eq!(called.content, "(tool failed: the call exceeded 1 s and was cancelled)");
}
