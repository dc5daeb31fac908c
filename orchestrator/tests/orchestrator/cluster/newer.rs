//! What nodes of a newer version write and say.

use bytes::Bytes;
use everturn_orchestrator::Commit;
use serde_json::{Value, json};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_newer_version_is_left_to_newer_nodes() {
    let nodes = Nodes::new();
    // A turn of this version, which a newer one continues.
    let (a, _) = nodes.node("a", [overloaded_with_hint(60_000)]).await;
    let started = a.start("hi").await.unwrap();
    a.watch(Some(started.from)).await.until("provider-retry").await;
    let (journal, _) = nodes.log.node("newer");
    let stored = journal.load(&a.id).await.unwrap().unwrap();
    let mut record = stored.turn.unwrap();
    record.definition.version = 99;
    let commit = Commit { turn: Some(Box::new(record)), ..Commit::new(stored.head) };
    let version = journal.append(&a.id, stored.version, commit).await.unwrap();

    let (b, model) = nodes.node("b", []).await;
    sleep(Duration::from_secs(600)).await;
    let error = b.orchestrator.retry_now(&b.id).await.unwrap_err().to_string();
    assert!(error.contains("format 99 by a newer version of Everturn"), "{error}");
    assert!(error.contains("upgrade Everturn"), "{error}");
    for world in [&a, &b] {
        assert_eq!(world.status().await, ConversationStatus::Active);
    }
    let stored = journal.load(&b.id).await.unwrap().unwrap();
    assert!(stored.version == version && stored.turn.is_some(), "nothing was written");
    assert_eq!(model.calls(), 0);
}

/// Sends a request as a node of another version might, and returns the reply.
async fn ask(nodes: &Nodes, to: &str, request: &Value) -> Value {
    let (_, cluster) = nodes.log.node("newer");
    let request = Bytes::from(request.to_string());
    let reply = cluster.commands.send(&to.into(), request, Duration::from_secs(1)).await.unwrap();
    serde_json::from_slice(&reply).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_unknown_command_is_refused_and_an_unknown_field_ignored() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one ", "two"])]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = a.watch(Some(started.from)).await;
    watcher.until("text-delta").await;
    for unknown in [
        json!({ "dance": {} }),
        json!("dance"),
        json!({ "command": { "id": a.id, "turn": 0, "command": "dance" } }),
        json!(7),
    ] {
        let reply = ask(&nodes, "a", &unknown).await;
        let message = reply["failed"]["message"].as_str().unwrap();
        assert!(message.contains("does not know the command, it may be older"), "{message}");
    }
    let turn = started.from.value();
    let stop = json!({ "command": { "id": a.id, "turn": turn, "command": "stop", "newer": [1] } });
    assert_eq!(ask(&nodes, "a", &stop).await, json!({ "done": true }));
    assert!(told(&mut watcher).await.contains(&"done aborted".to_owned()));
}
