//! Changes of a server's list.

use everturn_wire::ToolSourceStatus;
use serde_json::json;

use crate::support::{World, config, everything, python};

#[tokio::test(flavor = "multi_thread")]
async fn an_added_tool_is_offered_to_later_turns() {
    let world = World::up(config(python(&[])), &[("grow", json!({})), ("grown", json!({}))]).await;
    assert!(!world.offered().contains(&"s__grown".to_owned()));
    assert_eq!(world.call().await.content, "will be there");
    world.until(|source| source.tools.iter().any(|tool| tool.name == "s__grown")).await;
    assert_eq!(world.call().await.content, "grown");
    let offered: Vec<bool> = world
        .provider
        .requests()
        .iter()
        .map(|request| request.tools.iter().any(|tool| tool.name == "s__grown"))
        .collect();
    assert_eq!(
        offered,
        [false, false, true, true],
        "a turn is offered the same from its beginning to its end"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_removed_tool_fails_for_the_model() {
    let world = World::up(config(python(&[])), &[("shrink", json!({})), ("grow", json!({}))]).await;
    assert_eq!(world.call().await.content, "is gone");
    world.until(|source| source.tools.iter().all(|tool| tool.name != "s__grow")).await;
    let called = world.call().await;
    assert!(called.is_error && called.content.contains("there is no tool \"s__grow\""), "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_reports_a_changed_list_at_startup_stays_connected() {
    let world = World::up(config(everything("stdio")), &[("echo", json!({ "message": "a" }))]).await;
    assert!(world.offered().contains(&"s__get-sum".to_owned()));
    assert_eq!(world.call().await.content, "Echo: a");
    assert_eq!(world.source().status, ToolSourceStatus::Up);
}
