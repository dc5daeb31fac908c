//! Servers that end, and what is left of them when this process ends.

use std::time::Duration;

use everturn_mcp::{Command, Setting};
use everturn_orchestrator::ToolSource as _;
use everturn_wire::ToolSourceStatus;
use serde_json::json;
use tokio::time::timeout;

use crate::support::{DEADLINE, World, config, everything, is_alive, python, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_during_a_call_is_restarted_and_the_turn_survives() {
    let calls = [("process", json!({})), ("die", json!({})), ("process", json!({})), ("process", json!({}))];
    let world = World::up(config(python(&[])), &calls).await;
    let first = world.call().await.content;
    let died = world.call().await;
    assert!(died.is_error && died.content.contains("it is not known what it did"), "{died:?}");
    let down = world.until(|source| source.status == ToolSourceStatus::Down).await;
    let message = down.message.unwrap();
    assert!(message.starts_with("it ended with exit code 7; restarting in 1 s"), "{message}");
    assert!(down.tools.iter().any(|tool| tool.name == "s__process"), "its tools are still offered");
    let refused = world.call().await;
    assert!(
        refused.is_error && refused.content.contains("the MCP server s is down: it ended"),
        "{refused:?}"
    );
    world.until(|source| source.status == ToolSourceStatus::Up).await;
    let second = world.call().await;
    assert!(!second.is_error && second.content != first, "{second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_exits_at_startup_reports_why() {
    let mut command = python(&["dies-at-start"]);
    command.env.insert("KEY".to_owned(), Setting::Secret("s3cret-value".to_owned()));
    let world = World::new(config(command), &[("process", json!({}))]);
    world.server.settled().await;
    let source = world.source();
    assert_eq!(source.status, ToolSourceStatus::Down);
    let message = source.message.unwrap();
    let expected = "it ended with exit code 3: no key, only [secret]; restarting in 1 s";
    assert_eq!(message, expected);
    assert!(world.call().await.is_error, "the turn survives");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_named() {
    let command = Command { program: "no-such-program".to_owned(), ..Command::default() };
    let world = World::new(config(command), &[]);
    world.server.settled().await;
    let message = world.source().message.unwrap();
    assert!(message.starts_with("cannot start \"no-such-program\": No such file"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_speak_mcp_fails() {
    let command = Command { program: "cat".to_owned(), ..Command::default() };
    let mut config = config(command);
    config.timeouts.start = Duration::from_millis(500);
    let world = World::new(config, &[]);
    world.server.settled().await;
    assert_eq!(world.source().status, ToolSourceStatus::Down, "{:?}", world.source());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_server_that_is_starting() {
    let calls = [("process", json!({})), ("die", json!({})), ("process", json!({}))];
    let world = World::up(config(python(&[])), &calls).await;
    world.call().await;
    world.call().await;
    world.until(|source| source.status == ToolSourceStatus::Starting).await;
    let called = world.call().await;
    assert!(!called.is_error, "{called:?}");
    assert_eq!(called.output, ["waiting for the MCP server s to start\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_and_its_children_end_with_this_process() {
    for closed in [true, false] {
        let calls = [("process", json!({})), ("child", json!({}))];
        let world = World::up(config(python(&[])), &calls).await;
        let processes = [world.call().await.content, world.call().await.content];
        assert!(processes.iter().all(|process| is_alive(process)), "{processes:?}");
        if closed {
            timeout(DEADLINE, world.server.close()).await.unwrap();
            assert!(!processes.iter().any(|process| is_alive(process)), "{processes:?}");
        }
        drop(world);
        wait_for(|| (!processes.iter().any(|process| is_alive(process))).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ignores_the_end_of_its_input_is_killed() {
    let world = World::up(config(everything("stdio")), &[]).await;
    timeout(Duration::from_secs(5), world.server.close()).await.unwrap();
    let source = world.source();
    assert_eq!((source.status, source.message.as_deref()), (ToolSourceStatus::Down, Some("it was stopped")));
}
