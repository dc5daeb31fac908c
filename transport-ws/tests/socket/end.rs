//! Peers that must be disconnected: they are told why, and others are not affected.

use std::time::Duration;

use everturn_transport_ws::{SocketLimits, Sockets};
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::{
    peer::{Peer, text},
    raw::{RawPeer, frame_head},
    world,
    world::{World, still_time},
    world_with,
};

/// First bytes of frames.
const TEXT: u8 = 0x81;
const TEXT_BEGINS: u8 = 0x01;
const GOES_ON: u8 = 0x00;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const RESERVED: u8 = 0x83;

/// Close codes.
const PROTOCOL: u16 = 1002;
const NO_TEXT: u16 = 1007;
const TOO_BIG: u16 = 1009;

#[tokio::test]
async fn a_broken_peer_is_told_why_and_the_server_lives() {
    let mut world = world_with(SocketLimits { command: 1000, ..SocketLimits::default() }).await;
    let fragments =
        [frame_head(TEXT_BEGINS, 600), vec![b'x'; 600], frame_head(GOES_ON, 600), vec![b'x'; 600]];
    let table: [(&str, Vec<u8>, u16); 7] = [
        ("bad UTF-8", [frame_head(TEXT, 3), b"\"\xff\"".to_vec()].concat(), NO_TEXT),
        ("a frame announced too big", frame_head(TEXT, 1001), TOO_BIG),
        ("a frame announced huge", frame_head(TEXT, u64::MAX), TOO_BIG),
        ("fragments that add up", fragments.concat(), TOO_BIG),
        ("no mask", vec![TEXT, 2, b'{', b'}'], PROTOCOL),
        ("a reserved kind", frame_head(RESERVED, 0), PROTOCOL),
        ("nothing to go on with", frame_head(GOES_ON, 0), PROTOCOL),
    ];
    for (name, bytes, code) in table {
        let mut peer = RawPeer::connect(world.address).await;
        peer.send_bytes(&bytes).await;
        let (head, payload) = peer.next().await.unwrap();
        let told: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!((head, &told["type"]), (TEXT, &json!("error")), "{name}");
        assert_eq!(peer.close_code().await, code, "{name}");
        assert!(peer.next().await.is_none(), "{name}");
    }
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    assert_eq!(text(&peer.events_until("turn-sealed").await), "Hello");
}

#[tokio::test]
async fn pings_are_answered_and_a_close_is_returned() {
    let world = world().await;
    let mut peer = RawPeer::connect(world.address).await;
    peer.send(PING, b"here?").await;
    assert_eq!(peer.next().await, Some((PONG, b"here?".to_vec())));
    peer.send(0x88, &1000_u16.to_be_bytes()).await;
    assert_eq!(peer.close_code().await, 1000);
    assert!(peer.next().await.is_none());
}

/// The clock advances when all tasks wait, so the server's timeouts expire at once.
#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_asked_and_then_let_go() {
    let limits = SocketLimits { sockets: 1, ..SocketLimits::default() };
    let world = world_with(limits).await;
    let begun = tokio::time::Instant::now();
    let mut peer = RawPeer::connect(world.address).await;
    assert_eq!(peer.next().await, Some((PING, Vec::new())));
    assert!(peer.next().await.is_none());
    assert!(begun.elapsed() >= 2 * limits.ping_every);
    // Its slot is free again.
    Peer::connect(world.address).await;
}

#[tokio::test]
async fn limits_of_any_size_are_no_limits() {
    let longest = Duration::MAX;
    let limits = SocketLimits {
        sockets: usize::MAX,
        subscriptions: usize::MAX,
        command: usize::MAX,
        commands: usize::MAX,
        send_timeout: longest,
        ping_every: longest,
    };
    let mut world = world_with(limits).await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    peer.events_until("turn-sealed").await;
    peer.sync().await;
}

#[tokio::test]
async fn a_peer_that_answers_pings_stays() {
    let limits = SocketLimits::default();
    let world = world_with(limits).await;
    let mut peer = RawPeer::connect(world.address).await;
    peer.send(PING, b"").await;
    peer.next().await.unwrap();
    still_time();
    for _ in 0..5 {
        tokio::time::advance(limits.ping_every + Duration::from_millis(1)).await;
        assert_eq!(peer.next().await, Some((PING, Vec::new())));
        peer.send(PONG, b"").await;
        // What is sent later is read later.
        assert!(world.ask("GET /ws HTTP/1.1\r\n").await.contains("400"));
    }
}

#[tokio::test]
async fn a_server_that_shuts_down_says_goodbye() {
    let (mut orchestrator, mut sockets) = (None, None);
    let mut world = World::serve(|shared, _| {
        let all = sockets.insert(Sockets::new(shared.clone(), SocketLimits::default()));
        orchestrator = Some(shared);
        all.router()
    })
    .await;
    let (orchestrator, sockets) = (orchestrator.unwrap(), sockets.unwrap());
    let (mut talking, mut silent) = (Peer::connect(world.address).await, Peer::connect(world.address).await);
    talking.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    call.text("Hel");
    talking.events_until("text-delta").await;
    let grace = Duration::from_secs(1);
    let ending = tokio::spawn(async move { orchestrator.shutdown(grace).await });
    // During the grace period, the turn continues and no other begins.
    let refused = loop {
        let send = json!({ "type": "chat.send", "conversationId": "d", "message": "Hi" });
        match silent.answer_to(send).await {
            answer if answer["type"] == "chat.error" => break answer,
            _ => tokio::task::yield_now().await,
        }
    };
    assert!(refused["message"].as_str().unwrap().contains("shutting down"), "{refused}");
    call.text("lo");
    assert_eq!(text(&talking.events_until("text-delta").await), "lo");
    world.clock.advance(grace);
    for peer in [&mut talking, &mut silent] {
        // Nothing is sent about the turn, which continues elsewhere.
        let end = peer.end().await;
        assert_eq!(end.code, CloseCode::Away);
        assert!(end.reason.contains("shutting down"), "{end}");
    }
    ending.await.unwrap();
    sockets.ended().await;
}
