//! Limits on a client's resources, and their independence from other clients.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use everturn_transport_http::CallLimits;
use futures_util::{StreamExt as _, stream};
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
async fn limits_of_any_size_are_no_limits() {
    let limits = CallLimits {
        body: usize::MAX,
        bodies: usize::MAX,
        body_pause: Duration::MAX,
        body_time: Duration::MAX,
        chunks: usize::MAX,
        window: usize::MAX,
        list: usize::MAX,
        streams: usize::MAX,
        heartbeat: Duration::MAX,
        hold: Duration::MAX,
    };
    let mut world = world_with(limits).await;
    let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    assert!(stream.text().await.contains("turn-sealed"));
    for path in ["/conversations/c", "/conversations"] {
        assert_eq!(get(world.address, path).await.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn one_stream_too_many_is_refused_and_starts_nothing() {
    let mut world = world_with(CallLimits { streams: 1, ..CallLimits::default() }).await;
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
    // The slot is free again.
    while get(world.address, "/conversations/c/events").await.status != StatusCode::OK {}
}

#[tokio::test]
async fn a_body_too_large_is_refused_announced_or_not() {
    let world = world_with(CallLimits { body: 1000, ..CallLimits::default() }).await;
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

/// Returns a body of this length, of which only these pieces ever arrive.
fn unfinished(length: usize, pieces: impl IntoIterator<Item = &'static [u8]>) -> Body {
    let pieces: Vec<_> =
        pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece))).collect();
    let sent: usize = pieces.iter().flatten().map(Bytes::len).sum();
    assert!(sent < length);
    Body::from_stream(stream::iter(pieces).chain(stream::pending()))
}

#[tokio::test]
async fn unfinished_bodies_have_a_bound_together() {
    let world = world_with(CallLimits { bodies: 1000, ..CallLimits::default() }).await;
    // The first 16 KiB of a body do not count.
    const HALF: &[u8] = &[b' '; (16 << 10) + 600];
    let post = async |body| {
        let request =
            request(Method::POST, world.address, "/chat").header("content-type", "application/json");
        call(world.address, request.body(body).unwrap()).await
    };
    let half_of_two = || post(unfinished(2 * HALF.len(), [HALF]));
    // There is space for either, but not for both.
    let answer = tokio::select! {
        answer = half_of_two() => answer,
        answer = half_of_two() => answer,
    };
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.error().await.contains("try again later"));
    // The space is released when a client disconnects.
    loop {
        let whole = json!({ "message": "x".repeat((16 << 10) + 900) }).to_string();
        if post(Body::from(whole)).await.status == StatusCode::OK {
            break;
        }
    }
}

#[tokio::test]
async fn a_small_body_is_not_refused_for_the_large_ones_of_others() {
    for (room, length, status) in [
        // As if others had taken all of it.
        (0, 16 << 10, StatusCode::OK),
        (0, (16 << 10) + 1, StatusCode::SERVICE_UNAVAILABLE),
        (4 << 10, 20 << 10, StatusCode::OK),
        (4 << 10, (20 << 10) + 1, StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let world = world_with(CallLimits { bodies: room, ..CallLimits::default() }).await;
        let body = json!({ "message": "x".repeat(length - r#"{"message":""}"#.len()) }).to_string();
        assert_eq!(body.len(), length);
        let pieces = body.as_bytes().chunks(1000).map(Bytes::copy_from_slice).map(Ok::<_, std::io::Error>);
        let pieces = Body::from_stream(stream::iter(pieces.collect::<Vec<_>>()));
        let request =
            request(Method::POST, world.address, "/chat").header("content-type", "application/json");
        let answer = call(world.address, request.body(pieces).unwrap()).await;
        assert_eq!(answer.status, status, "{length} bytes where there is room for {room}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_refused() {
    crate::world::still_time();
    let world = world_with(CallLimits::default()).await;
    let drops = stream::unfold((), async |()| {
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), ()))
    });
    // One that pauses for ever, and one without long pauses that never ends.
    for body in [unfinished(2000, [&b" "[..]]), Body::from_stream(drops)] {
        let request =
            request(Method::POST, world.address, "/chat").header("content-type", "application/json");
        let answer = call(world.address, request.body(body).unwrap());
        let time = async {
            loop {
                tokio::time::advance(std::time::Duration::from_secs(1)).await;
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
        };
        let answer = tokio::select! {
            answer = answer => answer,
            () = time => unreachable!("time goes on for ever"),
        };
        assert_eq!(answer.status, StatusCode::REQUEST_TIMEOUT);
        assert!(answer.error().await.contains("in time"));
    }
}
