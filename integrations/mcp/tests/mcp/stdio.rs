//! `server-everything` as a program: the answers of its tools, and what is shown of them.

use everturn_mcp::{ServerConfig, Setting};
use everturn_wire::{Chunk, ToolPolicy, ToolSourceStatus};
use serde_json::json;

use crate::support::{World, config, everything, python};

fn everything_config() -> ServerConfig {
    config(everything("stdio"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_answered() {
    let world = World::up(everything_config(), &[("echo", json!({ "message": "hello" }))]).await;
    let called = world.call().await;
    assert_eq!((called.content.as_str(), called.is_error), ("Echo: hello", false));
    let request = world.provider.requests().remove(0);
    let echo = request.tools.iter().find(|tool| tool.name == "s__echo").unwrap();
    assert_eq!(echo.parameters["properties"]["message"]["type"], "string");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_progress_of_a_long_call_is_shown() {
    let arguments = json!({ "duration": 0.4, "steps": 4 });
    let world = World::up(everything_config(), &[("trigger-long-running-operation", arguments)]).await;
    let called = world.call().await;
    assert!(called.content.starts_with("Long running operation completed."), "{called:?}");
    assert_eq!(called.output, ["1/4\n", "2/4\n", "3/4\n", "4/4\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_described_and_sent_with_the_result() {
    let world = World::up(everything_config(), &[("get-tiny-image", json!({}))]).await;
    let called = world.call().await;
    let lines: Vec<&str> = called.content.lines().collect();
    assert!(lines[1].starts_with("[image: image/png, ") && lines[1].ends_with(" bytes]"), "{lines:?}");
    assert_eq!(lines[0], "Here's the image you requested:");
    assert_eq!(lines[2], "The image above is the MCP logo.");
    let told = world.provider.requests().pop().unwrap().messages.pop().unwrap();
    let Chunk::ToolResult { images, .. } = &*told.chunks[0] else { panic!("{told:?}") };
    assert_eq!(images.len(), 1);
    assert!(images[0].url.starts_with("data:image/png;base64,iVBOR"), "{:.60}", images[0].url);
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_content_is_returned_once() {
    let arguments = json!({ "location": "Chicago" });
    let world = World::up(everything_config(), &[("get-structured-content", arguments)]).await;
    let called = world.call().await;
    let told: serde_json::Value = serde_json::from_str(&called.content).unwrap();
    assert!(told["temperature"].is_number() && told["conditions"].is_string(), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_error_is_returned_to_the_model() {
    let calls = [("echo", json!({ "message": 1 })), ("echo", json!({ "message": "well" }))];
    let world = World::up(everything_config(), &calls).await;
    let called = world.call().await;
    assert!(called.is_error && called.content.contains("message"), "{called:?}");
    assert_eq!(world.call().await.content, "Echo: well");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_a_clean_environment_and_the_configured_variables() {
    let mut command = everything("stdio");
    command.env.insert("OF_TEST".to_owned(), Setting::Plain("plain value".to_owned()));
    command.env.insert("KEY".to_owned(), Setting::Secret("s3cret-value".to_owned()));
    let world = World::up(config(command), &[("get-env", json!({}))]).await;
    let told: serde_json::Value = serde_json::from_str(&world.call().await.content).unwrap();
    assert_eq!((&told["OF_TEST"], &told["KEY"]), (&json!("plain value"), &json!("[secret]")));
    assert_eq!(told["PATH"], json!(std::env::var("PATH").unwrap()));
    // Cargo sets it for tests.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok() && told["CARGO_MANIFEST_DIR"].is_null(), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_are_shown_but_not_trusted() {
    for trusted in [false, true] {
        let world = World::up(ServerConfig { trust_annotations: trusted, ..everything_config() }, &[]).await;
        let source = world.source();
        let find = |name: &str| source.tools.iter().find(|tool| tool.name == name).unwrap();
        let (reads, writes) = (find("s__echo"), find("s__toggle-simulated-logging"));
        let claimed = reads.annotations.clone().unwrap();
        assert_eq!((claimed.read_only, claimed.title.as_deref()), (Some(true), Some("Echo Tool")));
        assert_eq!(writes.annotations.clone().unwrap().read_only, Some(false));
        let of_reads = if trusted { ToolPolicy::Allow } else { ToolPolicy::Ask };
        assert_eq!((reads.policy, writes.policy), (of_reads, ToolPolicy::Ask));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_keeps_both_ends() {
    let config = ServerConfig { max_result: 1000, ..config(python(&[])) };
    let world = World::up(config, &[("long", json!({ "size": 3_000_000 }))]).await;
    let called = world.call().await;
    assert!(called.content.len() <= 1000, "{}", called.content.len());
    assert!(called.content.starts_with("beginx") && called.content.ends_with("xend"), "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_shown_with_the_call() {
    let world = World::up(config(python(&[])), &[("speak", json!({})), ("fail", json!({}))]).await;
    let called = world.call().await;
    assert_eq!(
        (called.output, called.content.as_str()),
        (vec!["[info mouth] something\n".to_owned()], "spoken")
    );
    let called = world.call().await;
    assert!(called.is_error && called.content.contains("Error executing tool fail"), "{called:?}");
    assert_eq!(world.source().status, ToolSourceStatus::Up);
}
