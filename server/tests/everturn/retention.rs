//! Data that a server removes by itself.

use everturn_orchestrator::Cursor;
use everturn_sim::{Loopback, chat, fault};
use everturn_store_sqlite::SqliteArchive;
use serde_json::json;
use tokio::{task::yield_now, time::timeout};

use crate::{
    client::{Socket, get, ndjson, post},
    home::{DEADLINE, Home, LONG, Server},
};

#[tokio::test]
async fn the_events_of_sealed_turns_are_deleted_at_the_next_start_and_all_else_is_kept() {
    let provider =
        Loopback::start([chat::text(["One."]).reply(), fault::overloaded(), chat::text(["Three."]).reply()])
            .await;
    let home = Home::with_provider(&provider, &format!("{LONG}\n[retention]\nkeep_events_days = 0"));
    let mut server = home.serve().await;
    let one = json!({ "conversationId": "done", "message": "one" });
    assert!(!ndjson(post(&server, "/chat", &one).await).await.is_empty());
    post(&server, "/chat", &json!({ "conversationId": "waits", "message": "two" })).await;
    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.subscribe", "conversationId": "waits" })).await;
    socket.events("provider-retry").await;
    let file = home.path().join(".local/share/everturn/everturn.db");
    let archive = SqliteArchive::open(file).unwrap();
    let events = |id: &str| archive.events(&id.into(), Cursor::default(), usize::MAX).unwrap().len();
    let waiting = events("waits");
    assert!(events("done") > 4 && waiting > 2);
    server.child.kill().await.unwrap();

    let server = home.serve().await;
    let gone = async {
        while events("done") > 0 {
            yield_now().await;
        }
    };
    timeout(DEADLINE, gone).await.expect("they go soon after the start");
    assert_eq!(events("waits"), waiting, "a turn that goes on keeps what it told");
    let history = get(&server, "/conversations/done").await.json().await;
    assert_eq!(history["chunks"].as_array().unwrap().len(), 2, "{history}");

    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.subscribe", "conversationId": "done", "cursor": "0" })).await;
    let three = json!({ "conversationId": "done", "message": "three" });
    post(&server, "/chat", &three).await;
    let seen = socket.events("turn-sealed").await;
    let prompts: Vec<_> = seen.iter().filter(|event| event["type"] == "user-message").collect();
    assert_eq!(prompts.len(), 1, "who comes from far back goes on with what is left: {seen:?}");
    assert_eq!(prompts[0]["text"], "three");
}

#[tokio::test]
async fn failed_attempts_are_kept_after_their_events_were_deleted() {
    let provider =
        Loopback::start([fault::overloaded(), fault::overloaded(), chat::text(["One."]).reply()]).await;
    let quick = "schedule = \"interactive\"\nbase_ms = 1\nmax_retries = 5\n[retention]\nkeep_events_days = 0";
    let home = Home::with_provider(&provider, quick);
    let mut server = home.serve().await;
    let one = json!({ "conversationId": "done", "message": "one" });
    assert!(!ndjson(post(&server, "/chat", &one).await).await.is_empty());
    let told = get(&server, "/conversations/done/attempts").await.json().await;
    let of =
        |n: usize| ["target", "category", "code", "waitMs"].map(|field| told["attempts"][n][field].clone());
    assert_eq!(of(0), [json!("sim/model"), json!("overloaded"), json!("529"), json!(1)]);
    assert_eq!(of(1)[3], json!(2), "{told}");
    server.child.kill().await.unwrap();

    let server = home.serve().await;
    let file = home.path().join(".local/share/everturn/everturn.db");
    let archive = SqliteArchive::open(file).unwrap();
    let gone = async {
        while !archive.events(&"done".into(), Cursor::default(), usize::MAX).unwrap().is_empty() {
            yield_now().await;
        }
    };
    timeout(DEADLINE, gone).await.expect("they go soon after the start");
    assert_eq!(get(&server, "/conversations/done/attempts").await.json().await, told);
}

#[tokio::test]
async fn a_wrong_setting_is_named_with_its_place() {
    let home = Home::with("[retention]\nkeep_events_turns = 1.5\n");
    let output = home.run(&["--listen", "127.0.0.1:0"]).await;
    let error = crate::home::stderr(&output);
    assert!(!output.status.success());
    assert!(
        error.contains("config.toml:2: `keep_events_turns` must be a whole number from 0 up, or \"all\""),
        "{error}"
    );
}

#[tokio::test]
async fn old_conversations_are_deleted_by_a_server_but_no_unfinished_turn() {
    let provider = Loopback::start([chat::text(["One."]).reply(), fault::overloaded()]).await;
    let home = Home::with_provider(&provider, &format!("{LONG}\n[retention]\nkeep_conversations_days = 0"));
    let mut server = home.serve().await;
    let one = json!({ "conversationId": "done", "message": "one" });
    assert!(!ndjson(post(&server, "/chat", &one).await).await.is_empty());
    post(&server, "/chat", &json!({ "conversationId": "waits", "message": "two" })).await;
    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.subscribe", "conversationId": "waits" })).await;
    socket.events("provider-retry").await;
    let ids = async |server: &Server| -> Vec<String> {
        let list = get(server, "/conversations").await.json().await;
        list.as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&server).await, ["waits", "done"]);
    server.child.kill().await.unwrap();

    let server = home.serve().await;
    let gone = async {
        while ids(&server).await != ["waits"] {
            yield_now().await;
        }
    };
    timeout(DEADLINE, gone).await.expect("it goes soon after the start");
    let state = get(&server, "/conversations/waits/status").await.json().await;
    assert_eq!(state["retry"]["phase"], "waiting", "{state}");
}
