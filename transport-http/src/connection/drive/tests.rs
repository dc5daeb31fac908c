//! Requests that arrive while their connection is evicted: none is begun and then cut off.

use std::{pin::pin, sync::Arc};

use axum::{
    body::Bytes,
    routing::{get, post},
};
use futures_util::{StreamExt as _, poll, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
    task::yield_now,
};

use super::*;
use crate::connection::open::Open;

/// Returns what the client reads until the connection is closed. Everything but the last part of `sent` is processed
/// before `then`.
async fn told(open: &Arc<Open>, router: Router, sent: &[&str], then: impl FnOnce()) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (_close, closed) = watch::channel(false);
    let mut driven = pin!(drive(stream, open.reserve(), router, ConnectionLimits::default(), None, closed));
    for piece in sent {
        assert!(poll!(&mut driven).is_pending());
        client.write_all(piece.as_bytes()).await.unwrap();
        // Until the runtime sees the incoming data.
        for _ in 0..100 {
            yield_now().await;
        }
    }
    then();
    driven.await;
    let mut told = String::new();
    // Closing with unread data is a reset.
    let _ = client.read_to_string(&mut told).await;
    told
}

fn open() -> Arc<Open> {
    Arc::new(Open::new(ConnectionLimits::default()))
}

#[tokio::test]
async fn a_request_that_comes_as_its_connection_makes_room_is_not_begun() {
    let open = open();
    let (begun, mut begins) = mpsc::unbounded_channel();
    let begin = async move || {
        let _ = begun.send(());
    };
    let router = Router::new().route("/", get(begin));
    let told = told(&open, router, &["GET / HTTP/1.1\r\nHost: h\r\n\r\n"], || assert!(open.evict())).await;
    assert!(told.is_empty() && begins.recv().await.is_none());
}

#[tokio::test]
async fn nor_is_one_whose_body_comes_whole_only_then() {
    let open = open();
    let (begun, mut begins) = mpsc::unbounded_channel();
    let take = async move |body: Bytes| {
        let _ = begun.send(body);
    };
    let router = Router::new().route("/", post(take));
    let sent = ["POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nfour", "fives"];
    let told = told(&open, router, &sent, || assert!(open.evict())).await;
    assert!(told.is_empty() && begins.recv().await.is_none(), "{told}");
}

/// Evicts a connection on drop.
struct Evicts(Arc<Open>);

impl Drop for Evicts {
    fn drop(&mut self) {
        assert!(self.0.evict());
    }
}

#[tokio::test]
async fn nor_is_the_next_one_of_a_client_that_does_not_wait_for_answers() {
    let open = open();
    let (begun, mut begins) = mpsc::unbounded_channel();
    let evicting = open.clone();
    let answer = async move || {
        let _ = begun.send(());
        let evicts = Evicts(evicting);
        let pieces = ["hello"].map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
        // The body is dropped after the response, and before anything else is read.
        Body::from_stream(stream::iter(pieces).inspect(move |_| {
            let _ = &evicts;
        }))
    };
    let router = Router::new().route("/", get(answer));
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let told = told(&open, router, &[&request.repeat(2)], || {}).await;
    assert!(told.ends_with("0\r\n\r\n"), "{told}");
    assert!(begins.recv().await.is_some() && begins.recv().await.is_none(), "one was begun");
}
