//! What a client may cost, and that it costs nobody else anything.

use axum::body::Body;
use bytes::Bytes;
use everturn_transport_http::Limits;
use futures_util::stream;
use hyper::{Method, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
};

use crate::{
    client::{call, get, post, request},
    world, world_with,
};

#[tokio::test]
async fn a_slow_reader_delays_nobody_and_misses_nothing() {
    let mut world = world().await;
    let stream = TcpSocket::new_v4().unwrap();
    stream.set_recv_buffer_size(16 << 10).unwrap();
    let mut slow = stream.connect(world.address).await.unwrap();
    let body = json!({ "conversationId": "c", "message": "Much" }).to_string();
    let head = format!(
        "POST /chat HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        world.address,
        body.len()
    );
    slow.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let call = world.call().await;
    let mut quick = get(world.address, "/conversations/c/events").await;
    let piece = "0123456789abcdef".repeat(1024);
    for _ in 0..1024 {
        call.text(&piece);
    }
    call.finish();
    while !quick.event().await.1.contains(r#""type":"turn-sealed""#) {}
    let mut told = String::new();
    slow.read_to_string(&mut told).await.unwrap();
    assert_eq!(told.matches("0123456789abcdef").count(), 1024 * 1024);
    assert!(told.contains(r#""type":"turn-sealed""#) && told.ends_with("0\r\n\r\n"));
}

#[tokio::test]
async fn one_stream_too_many_is_refused_and_starts_nothing() {
    let mut world = world_with(Limits { streams: 1, ..Limits::default() }).await;
    let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    for path in ["/chat", "/conversations/c/events"] {
        let answer = match path {
            "/chat" => post(world.address, path, json!({ "conversationId": "d", "message": "Hi" })).await,
            _ => get(world.address, path).await,
        };
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(answer.error().await.contains("1 event streams"));
    }
    world.call().await.answer("Hello");
    stream.text().await;
    assert_eq!(get(world.address, "/conversations/d/status").await.status, StatusCode::NOT_FOUND);
    // The place is free again.
    while get(world.address, "/conversations/c/events").await.status != StatusCode::OK {}
}

#[tokio::test]
async fn a_body_too_large_is_refused_announced_or_not() {
    let world = world_with(Limits { body: 1000, ..Limits::default() }).await;
    let large = json!({ "message": "x".repeat(1000) }).to_string();
    let pieces =
        large.as_bytes().chunks(100).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)));
    let pieces: Vec<_> = pieces.collect();
    for body in [Body::from(large), Body::from_stream(stream::iter(pieces))] {
        let request =
            request(Method::POST, world.address, "/chat").header("content-type", "application/json");
        let answer = call(world.address, request.body(body).unwrap()).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(!answer.error().await.is_empty());
    }
}
