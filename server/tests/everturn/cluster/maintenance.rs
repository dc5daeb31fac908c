//! What people and time remove from conversations that servers share.

use everturn_orchestrator::{Cursor, Journal as _};
use everturn_sim::{
    Loopback, chat, fault,
    nats::{self, NatsConfig, NatsServer},
};
use everturn_store_nats::{NatsJournal, Options};
use serde_json::{Value, json};
use tokio::{task::yield_now, time::timeout};

use crate::{
    client::{Socket, get, ndjson, post},
    home::{DEADLINE, Home, LONG, Server, stderr, stdout},
};

/// A server that shares its conversations: one that is done, and one that waits for its first retry.
struct Shared {
    home: Home,
    server: Server,
    nats: NatsServer,
    _provider: Loopback,
    _directory: tempfile::TempDir,
}

impl Shared {
    async fn start(more: &str) -> Option<Self> {
        let program = nats::program()?;
        let directory = tempfile::tempdir().unwrap();
        let nats = NatsServer::start(&program, directory.path(), NatsConfig::default()).await;
        let replies = [chat::text(["One."]).reply(), fault::overloaded(), chat::text(["Two."]).reply()];
        let provider = Loopback::start(replies).await;
        let cluster = format!("{LONG}\n[cluster]\nservers = [\"{}\"]\n{more}", nats.url());
        let home = Home::with_provider(&provider, &cluster);
        let server = home.serve().await;
        let done = json!({ "conversationId": "done-1", "message": "roll" });
        ndjson(post(&server, "/chat", &done).await).await;
        post(&server, "/chat", &json!({ "conversationId": "waits-1", "message": "hello" })).await;
        let mut socket = Socket::open(&server, "/ws").await;
        socket.say(&json!({ "type": "chat.subscribe", "conversationId": "waits-1" })).await;
        socket.events("provider-retry").await;
        Some(Self { home, server, nats, _provider: provider, _directory: directory })
    }

    /// Returns the output of a successful command.
    async fn said(&self, words: &[&str]) -> String {
        let output = self.home.run(&[&["conversations"], words].concat()).await;
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    }
}

#[tokio::test]
async fn shared_conversations_are_read_and_deleted_beside_a_running_server() {
    let Some(shared) = Shared::start("").await else { return };
    let list = shared.said(&["list"]).await;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[1].starts_with("waits-1  ") && lines[1].contains("  waits until "), "{list}");
    assert!(lines[2].starts_with("done-1   ") && lines[2].ends_with("  roll"), "{list}");
    // The command line names the servers for who has no configuration.
    let elsewhere = Home::empty();
    let named = ["conversations", "list", "--json", "--cluster", &shared.nats.url()];
    let listed: Value = serde_json::from_str(&stdout(&elsewhere.run(&named).await)).unwrap();
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&json!("waits-1"), &json!("done-1")));
    let shown = shared.said(&["show", "done"]).await;
    assert!(shown.contains("One."), "{shown}");
    let shown = shared.said(&["show", "waits"]).await;
    assert!(shown.contains("The turn waits until ") && shown.contains("overloaded"), "{shown}");
    let exported = shared.said(&["export"]).await;
    assert!(exported.lines().count() >= 4 && exported.contains("\"text\":\"One.\""), "{exported}");

    let deleted = shared.said(&["delete", "--yes", "done", "waits"]).await;
    assert!(deleted.contains("Deleted done-1") && deleted.contains("Deleted waits-1"), "{deleted}");
    assert_eq!(shared.said(&["list"]).await, "No conversations yet.\n");
    assert_eq!(get(&shared.server, "/conversations/done-1").await.status, 404);
    // Its server learns that it is gone when it goes on with the turn, at the latest.
    post(&shared.server, "/conversations/waits-1/retry/now", &json!({})).await;
    let gone = async {
        while get(&shared.server, "/conversations/waits-1").await.status != 404 {
            yield_now().await;
        }
    };
    timeout(DEADLINE, gone).await.expect("the turn ends");
    assert_eq!(shared.said(&["list"]).await, "No conversations yet.\n", "and does not come back");
}

#[tokio::test]
async fn the_events_of_sealed_turns_are_deleted_at_the_next_start() {
    let Some(mut shared) = Shared::start("[retention]\nkeep_events_days = 0").await else { return };
    let journal = NatsJournal::connect(&Options::new([shared.nats.url()])).await.unwrap();
    let events =
        async |id: &str| journal.events(&id.into(), Cursor::default(), usize::MAX).await.unwrap().len();
    let waiting = events("waits-1").await;
    assert!(events("done-1").await > 4 && waiting > 2);
    shared.server.child.kill().await.unwrap();
    shared.server = shared.home.serve().await;
    let gone = async {
        while events("done-1").await > 0 {
            yield_now().await;
        }
    };
    timeout(DEADLINE, gone).await.expect("they go soon after the start");
    assert_eq!(events("waits-1").await, waiting, "a turn that is not sealed keeps its events");
    let history = get(&shared.server, "/conversations/done-1").await.json().await;
    assert_eq!(history["chunks"].as_array().unwrap().len(), 2, "{history}");
    assert_eq!(history["turns"].as_array().unwrap().len(), 1, "{history}");
}
