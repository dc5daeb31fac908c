//! Limits on a peer's resources, and their independence from other peers.

use std::time::Duration;

use axum::{Router, extract::Request, http::HeaderMap, response::IntoResponse as _, routing::get};
use everturn_transport_ws::{SocketLimits, Sockets};
use everturn_wire::ErrorBody;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio_tungstenite::tungstenite::http::StatusCode;

use crate::{
    peer::{Peer, request, text},
    raw::{RawPeer, frame_head},
    world,
    world::{World, still_time},
    world_with,
};

/// Far more than the system buffers for a narrow connection that nobody reads.
const PIECES: usize = 1024;
const PIECE: usize = 16 << 10;

/// Runs a turn with a flood of text to its end, watched by a fast reader.
pub(crate) async fn flood(world: &mut World) -> String {
    let mut quick = Peer::connect(world.address).await;
    quick.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Much" })).await;
    let call = world.call().await;
    let piece = "0123456789abcdef".repeat(PIECE / 16);
    for _ in 0..PIECES {
        call.text(&piece);
    }
    call.finish();
    text(&quick.events_until("turn-sealed").await)
}

#[tokio::test]
async fn a_slow_reader_delays_nobody_and_misses_nothing() {
    let mut world = world().await;
    let mut slow = Peer::connect_narrow(world.address).await;
    slow.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    slow.events_until("turn-sealed").await;
    // It watches, and stops reading.
    let told = flood(&mut world).await;
    assert_eq!(told.len(), PIECES * PIECE);
    // Commands of a slow reader are still handled, and do not cost it any pending events.
    slow.say(json!({ "type": "chat.send", "conversationId": "c", "message": "next" })).await;
    let next = world.call().await;
    assert!(text(&slow.events_until("turn-sealed").await) == told);
    next.answer("Yes");
    assert_eq!(text(&slow.events_until("turn-sealed").await), "Yes");
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_dropped() {
    let limits = SocketLimits { sockets: 2, ..SocketLimits::default() };
    let mut world = world_with(limits).await;
    let mut stuck = Peer::connect_narrow(world.address).await;
    stuck.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    stuck.events_until("turn-sealed").await;
    let told = flood(&mut world).await;
    assert_eq!(told.len(), PIECES * PIECE);
    still_time();
    tokio::time::advance(limits.send_timeout + Duration::from_secs(1)).await;
    let mut got = 0;
    while let Some(Ok(message)) = stuck.socket.next().await {
        got += message.len();
    }
    assert!(got < told.len(), "{got}");
    // Its slot is free again.
    Peer::connect(world.address).await;
}

#[tokio::test]
async fn one_socket_too_many_is_refused_until_another_leaves() {
    let world = world_with(SocketLimits { sockets: 2, ..SocketLimits::default() }).await;
    let first = Peer::connect(world.address).await;
    let _second = Peer::connect(world.address).await;
    let Err((status, body)) = Peer::open(world.address, request(world.address, "/ws")).await else {
        panic!()
    };
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(serde_json::from_str::<ErrorBody>(&body).unwrap().error.contains("2 WebSockets"), "{body}");
    drop(first);
    while Peer::open(world.address, request(world.address, "/ws")).await.is_err() {}
}

#[tokio::test]
async fn one_conversation_too_many_is_refused_until_another_is_left() {
    let mut world = world_with(SocketLimits { subscriptions: 2, ..SocketLimits::default() }).await;
    let mut peer = Peer::connect(world.address).await;
    for id in ["a", "b"] {
        peer.say(json!({ "type": "chat.send", "conversationId": id, "message": "Hi" })).await;
        world.call().await.answer("Hello");
        peer.events_until("turn-sealed").await;
    }
    let answer = peer.answer_to(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    assert!(answer["message"].as_str().unwrap().contains("limit of 2 watched conversations"), "{answer}");
    // Conversations that are already watched need no more room.
    peer.say(json!({ "type": "chat.subscribe", "conversationId": "a", "cursor": "0" })).await;
    peer.events_until("turn-sealed").await;
    peer.say(json!({ "type": "chat.unsubscribe", "conversationId": "b" })).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    assert_eq!(text(&peer.events_until("turn-sealed").await), "Hello");
}

#[tokio::test]
async fn what_is_no_upgrade_is_told_so() {
    let world = world().await;
    let table = [
        ("GET /ws HTTP/1.1\r\n", "HTTP/1.1 400 "),
        ("POST /ws HTTP/1.1\r\nContent-Length: 0\r\n", "HTTP/1.1 405 "),
        ("GET /ws HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n", "HTTP/1.1 400 "),
    ];
    for (head, status) in table {
        let answer = world.ask(head).await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(answer.starts_with(status), "{answer}");
        assert!(serde_json::from_str::<ErrorBody>(body).is_ok(), "{answer}");
    }
}

#[tokio::test]
async fn a_path_can_be_a_page_and_a_socket() {
    let mut world = World::serve(|orchestrator, _| {
        let sockets = Sockets::new(orchestrator, SocketLimits { sockets: 1, ..SocketLimits::default() });
        let root = sockets.clone();
        let either = async move |headers: HeaderMap, request: Request| {
            if Sockets::are_wanted(&headers) { root.upgrade(request).await } else { "page".into_response() }
        };
        sockets.router().merge(Router::new().route("/", get(either)))
    })
    .await;
    assert!(world.ask("GET / HTTP/1.1\r\n").await.ends_with("page"));
    let mut peer = Peer::open(world.address, request(world.address, "/")).await.unwrap();
    peer.say(json!({ "type": "chat.send", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    assert_eq!(text(&peer.events_until("turn-sealed").await), "Hello");
    // They share the limit.
    assert!(Peer::open(world.address, request(world.address, "/ws")).await.is_err());
}

#[tokio::test]
async fn a_peer_that_pings_and_never_reads_is_let_go() {
    still_time();
    let world = world().await;
    let mut peer = RawPeer::connect(world.address).await;
    let ping = [&frame_head(0x89, 125)[..], &[0; 125]].concat();
    let pings = ping.repeat(1000);
    let mut sent = 0;
    // The system buffers some megabytes for both ends.
    while sent < 64 << 20 {
        let written = tokio::select! {
            written = peer.try_send_bytes(&pings) => written,
            () = async { loop { tokio::time::advance(Duration::from_millis(10)).await; tokio::task::yield_now().await; } } => unreachable!(),
        };
        match written {
            Ok(()) => sent += pings.len(),
            Err(_) => return,
        }
    }
    panic!("the server has read {sent} bytes of pings");
}
