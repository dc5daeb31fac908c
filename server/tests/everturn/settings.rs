//! Retry settings changed at run time, across a restart.

use everturn_sim::{Loopback, Request, chat, fault};
use hyper::Method;
use serde_json::{Value, json};

use crate::{
    client::{get, post, send},
    home::{Home, LONG, Server, stderr},
};

async fn set(server: &Server, path: &str, change: Value) -> Value {
    let headers = [("content-type", "application/json")];
    let answer = send(server, Method::PATCH, path, &headers, change.to_string()).await;
    assert_eq!(answer.status, 200);
    answer.json().await
}

async fn read(server: &Server, path: &str) -> Value {
    get(server, path).await.json().await
}

/// Makes a turn of the conversation fail, and returns its first wait.
async fn wait(server: &Server, id: &str) -> Value {
    let mut turn = post(server, "/chat", &json!({ "conversationId": id, "message": "hi" })).await;
    loop {
        let line = turn.line().await.expect("it fails before it ends");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["type"] == "provider-retry" {
            return event["delayMs"].clone();
        }
    }
}

async fn stop(server: &Server, id: &str) {
    post(server, &format!("/conversations/{id}/stop"), &Value::Null).await;
    while read(server, &format!("/conversations/{id}/status")).await["isActive"] == true {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn settings_outlive_a_kill_and_go_with_their_conversation() {
    let provider = Loopback::with(|_: &Request| fault::overloaded()).await;
    let home = Home::with_provider(&provider, LONG);
    let mut server = home.serve().await;
    assert_eq!(wait(&server, "c1").await, 45_000, "as configured");
    stop(&server, "c1").await;
    set(&server, "/retry", json!({ "preset": "interactive", "baseDelayMs": 50_000 })).await;
    let of_c1 =
        set(&server, "/conversations/c1/retry", json!({ "baseDelayMs": 60_000, "enabled": true })).await;
    assert_eq!(wait(&server, "c1").await, 60_000);
    let waiting = read(&server, "/conversations/c1/status").await["retry"].clone();
    server.child.kill().await.unwrap();

    let mut server = home.serve().await;
    assert_eq!(read(&server, "/conversations/c1/retry").await, of_c1);
    assert_eq!(
        read(&server, "/retry").await["set"],
        json!({ "preset": "interactive", "baseDelayMs": 50_000 })
    );
    set(&server, "/conversations/c1/retry", json!({ "baseDelayMs": 70_000 })).await;
    assert_eq!(read(&server, "/conversations/c1/status").await["retry"], waiting, "the wait is as it was");
    stop(&server, "c1").await;
    assert_eq!(wait(&server, "c1").await, 70_000);
    assert_eq!(wait(&server, "c2").await, 50_000);
    server.child.kill().await.unwrap();

    let deleted = home.run(&["conversations", "delete", "--yes", "c1"]).await;
    assert!(deleted.status.success(), "{}", stderr(&deleted));
    let server = home.serve().await;
    assert_eq!(wait(&server, "c1").await, 50_000, "another one of its name");
    assert_eq!(read(&server, "/conversations/c1/retry").await["set"], json!({}));
}

#[tokio::test]
async fn a_route_without_a_schedule_obeys_the_global_settings() {
    let provider = Loopback::start([fault::overloaded(), chat::text(["Hello"]).reply()]).await;
    let home = Home::with(&format!(
        "default_model = \"route/main\"\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"m\"]\n\
         [[route]]\nname = \"main\"\ntargets = [\"sim/m\"]\n",
        provider.base_url()
    ));
    let server = home.serve().await;
    set(&server, "/retry", json!({ "preset": "exponential", "baseDelayMs": 1, "jitter": 0 })).await;
    assert_eq!(wait(&server, "c1").await, 1);
}

#[tokio::test]
async fn the_file_switches_retries_off_and_names_fallbacks() {
    let busy = Loopback::with(|_: &Request| fault::overloaded()).await;
    let spare = Loopback::with(|_: &Request| chat::text(["Hello"]).reply()).await;
    let provider = |name: &str, provider: &Loopback| {
        format!(
            "[[provider]]\nname = \"{name}\"\nbase_url = \"{}/v1\"\nmodels = [\"m\"]\n",
            provider.base_url()
        )
    };
    let home = Home::with(&format!(
        "[retry]\nenabled = false\n[retry.fallback_chains]\n\"busy/m\" = [\"spare/m\"]\n{}{}",
        provider("busy", &busy),
        provider("spare", &spare)
    ));
    let server = home.serve().await;
    let effective = read(&server, "/retry").await["effective"].clone();
    assert_eq!(effective["enabled"], false);
    assert_eq!(effective["fallbackChains"], json!({ "busy/m": ["spare/m"] }));
    let message = json!({ "conversationId": "c1", "message": "hi" });
    let failed = post(&server, "/chat", &message).await.text().await;
    assert!(failed.contains("\"reason\":\"error\"") && !failed.contains("provider-retry"), "{failed}");
    assert_eq!((busy.counts().requests, spare.counts().requests), (1, 0));
    set(&server, "/retry", json!({ "enabled": true })).await;
    let answered = post(&server, "/chat", &message).await.text().await;
    assert!(answered.contains("Hello"), "{answered}");
    assert_eq!(spare.counts().requests, 1, "by the chain of the file");
}
