//! The list of conversations at a server that drives none of them.

use everturn_sim::nats;
use hyper::Method;
use serde_json::{Value, json};

use super::world::{Size, World};
use crate::{
    client::{Socket, get, post, send},
    home::Server,
};

async fn listed(server: &Server) -> Vec<Value> {
    get(server, "/conversations").await.json().await.as_array().unwrap().clone()
}

/// Waits until the socket is told this status of the conversation.
async fn hear(socket: &mut Socket, status: &str) {
    loop {
        let told = socket.hear("conversation.statusChanged").await;
        assert_eq!(told["conversationId"], "waits", "{told}");
        if told["status"] == status {
            return;
        }
    }
}

#[tokio::test]
async fn a_server_lists_what_others_do_as_it_happens() {
    let Some(program) = nats::program() else { return };
    let world = World::start(&program, Size { nats: 1, turns: 0, faults: 0 }, 0).await;
    let [a, b, c] = world.servers() else { panic!("three servers") };
    let mut socket = Socket::open(b, "/ws").await;
    // The answer shows that the server has taken the socket in.
    socket.say(&json!({ "type": "chat.stop", "conversationId": "unknown" })).await;
    socket.hear("chat.error").await;
    let mut asked = post(a, "/chat", &json!({ "conversationId": "waits", "message": "wait" })).await;
    while !asked.line().await.unwrap().contains("provider-retry") {}
    hear(&mut socket, "active").await;
    let ends = get(a, "/conversations/waits/status").await.json().await["retry"]["nextAt"].as_u64().unwrap();
    for server in [a, b, c] {
        let list = listed(server).await;
        assert_eq!(
            (list.len(), &list[0]["status"], &list[0]["waitsUntil"]),
            (1, &json!("active"), &json!(ends))
        );
    }

    let headers = [("content-type", "application/json")];
    let title = json!({ "title": "Renamed" }).to_string();
    assert_eq!(send(c, Method::PATCH, "/conversations/waits", &headers, title).await.status, 200);
    hear(&mut socket, "active").await;
    assert_eq!(listed(b).await[0]["title"], "Renamed");

    assert_eq!(post(c, "/conversations/waits/retry/now", &json!({})).await.status, 200);
    hear(&mut socket, "idle").await;
    for server in [a, b, c] {
        let list = listed(server).await;
        assert_eq!((&list[0]["status"], list[0].get("waitsUntil")), (&json!("idle"), None), "{list:?}");
    }

    assert_eq!(send(a, Method::DELETE, "/conversations/waits", &[], String::new()).await.status, 200);
    hear(&mut socket, "closed").await;
    assert_eq!(listed(b).await, [] as [Value; 0]);
}
