//! Turns that began before a restart of this process.

use std::{sync::Arc, time::Duration};

use everturn_mcp::ServerConfig;
use everturn_orchestrator::MemoryJournal;
use everturn_wire::ToolSourceStatus;
use serde_json::json;

use crate::support::{Note, World, called, config, python};

fn trusted() -> ServerConfig {
    ServerConfig { trust_annotations: true, ..config(python(&[])) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_turn_waits_for_the_server_of_its_tools() {
    let (journal, note) = (Arc::new(MemoryJournal::new()), Note::new());
    let calls = [("again", json!({ "place": note.path() }))];
    let world = World::after(journal.clone(), trusted(), &calls);
    world.until(|source| source.status == ToolSourceStatus::Up).await;
    let (started, _) = world.begin().await;
    note.says(&["begun"]).await;
    world.orchestrator.shutdown(Duration::ZERO).await;
    drop(world);

    // The model has already called the tool; its answer is next.
    let world = World::after(journal, trusted(), &[]);
    assert_eq!(world.source().status, ToolSourceStatus::Starting);
    assert_eq!(world.orchestrator.resume().await.unwrap(), 1);
    let mut watched =
        world.orchestrator.subscribe(&started.conversation_id, Some(started.from), true).await.unwrap();
    let called = called(&mut watched).await;
    assert_eq!((called.content.as_str(), called.is_error), ("again", false));
    let request = world.provider.requests().remove(0);
    assert!(request.tools.iter().any(|tool| tool.name == "s__again"), "the model is offered it still");
}
