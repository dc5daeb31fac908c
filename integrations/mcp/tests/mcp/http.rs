//! Servers over streamable HTTP.

use everturn_mcp::{Command, Connection, Endpoint, McpServer, ServerConfig, Setting};
use everturn_wire::ToolSourceStatus;
use serde_json::json;

use crate::support::{Note, Remote, World, event, everything, python};

fn at(port: u16) -> ServerConfig {
    let url = format!("http://127.0.0.1:{port}/mcp");
    ServerConfig::new("s", Connection::Http(Endpoint { url, ..Endpoint::default() }))
}

fn in_node(_: u16) -> Command {
    everything("streamableHttp")
}

fn in_python(port: u16) -> Command {
    python(&["http", &port.to_string()])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_answered_and_its_progress_shown() {
    let remote = Remote::start(in_node, None).await;
    let arguments = json!({ "duration": 0.3, "steps": 3 });
    let calls = [("echo", json!({ "message": "hello" })), ("trigger-long-running-operation", arguments)];
    let world = World::up(at(remote.port), &calls).await;
    assert_eq!(world.call().await.content, "Echo: hello");
    let called = world.call().await;
    assert!(called.content.starts_with("Long running operation completed."), "{called:?}");
    assert_eq!(called.output, ["1/3\n", "2/3\n", "3/3\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_cancels_the_call() {
    let (remote, note) = (Remote::start(in_python, None).await, Note::new());
    let world = World::up(at(remote.port), &[("silent", json!({ "place": note.path() }))]).await;
    let (started, mut watched) = world.begin().await;
    note.says(&["begun"]).await;
    assert!(world.orchestrator.stop(&started.conversation_id).await.unwrap());
    while event(&mut watched).await != everturn_wire::EventBody::TurnSealed {}
    note.says(&["begun", "cancelled"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_changes_is_read_again() {
    let remote = Remote::start(in_python, None).await;
    let world = World::up(at(remote.port), &[("grow", json!({})), ("grown", json!({}))]).await;
    assert_eq!(world.call().await.content, "will be there");
    world.until(|source| source.tools.iter().any(|tool| tool.name == "s__grown")).await;
    assert_eq!(world.call().await.content, "grown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_is_reconnected() {
    let remote = Remote::start(in_node, None).await;
    let port = remote.port;
    let echo = ("echo", json!({ "message": "a" }));
    let world = World::up(at(port), &[echo.clone(), echo.clone(), echo]).await;
    assert_eq!(world.call().await.content, "Echo: a");
    remote.kill().await;
    let failed = world.call().await;
    assert!(failed.is_error && failed.content.contains("failed in transit"), "{failed:?}");
    let down = world.until(|source| source.status == ToolSourceStatus::Down).await;
    assert!(
        !format!("{down:?}{failed:?}").contains("127.0.0.1"),
        "the URL is not shown: {down:?} {failed:?}"
    );
    let _again = Remote::start(in_node, Some(port)).await;
    world.until(|source| source.status == ToolSourceStatus::Up).await;
    assert_eq!(world.call().await.content, "Echo: a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_reported_in_words() {
    let world = World::new(at(9), &[]);
    let down = world.until(|source| source.status == ToolSourceStatus::Down).await;
    let message = down.message.unwrap();
    assert!(message.starts_with("the handshake failed: ") && !message.contains("::"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_configuration_is_rejected_at_once() {
    let endpoint = |url: &str, header: &str| {
        let headers = [("X-Key".to_owned(), Setting::Secret(header.to_owned()))].into();
        ServerConfig::new(
            "s",
            Connection::Http(Endpoint { url: url.to_owned(), headers, ..Endpoint::default() }),
        )
    };
    for (config, expected) in [
        (endpoint("ftp://s3cret/", ""), "its `url` must begin with http:// or https://"),
        (endpoint("nonsense s3cret", ""), "its `url` must begin with http://"),
        (endpoint("http://127.0.0.1:1/", "s3cret\n"), "\"X-Key\" cannot be sent as a header"),
        (ServerConfig { name: "a__b".to_owned(), ..at(1) }, "\"a__b\" cannot be the name of an MCP server"),
    ] {
        let error = McpServer::start(config).err().unwrap().to_string();
        assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
    }
}
