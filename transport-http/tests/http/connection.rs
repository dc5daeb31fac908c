//! Idle connections, and socket options.

use axum::{
    Router,
    body::{Body, Bytes},
    routing::{get, post},
};
use everturn_transport_http::{ConnectionLimits, serve};
use futures_util::{StreamExt as _, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::{JoinHandle, yield_now},
    time::{Duration, advance},
};

use crate::world::still_time;

/// A server with few slots and short limits, on which the test decides when `/slow` is answered.
struct Served {
    address: std::net::SocketAddr,
    /// Requests to `/slow` that arrived.
    came: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    close: Option<oneshot::Sender<()>>,
    ended: JoinHandle<()>,
}

fn limits(connections: usize) -> ConnectionLimits {
    ConnectionLimits { connections, ..ConnectionLimits::default() }
}

async fn served(limits: ConnectionLimits) -> Served {
    let (ask, came) = mpsc::unbounded_channel();
    let slow = async move || {
        let (answer, go_on) = oneshot::channel();
        let _ = ask.send(answer);
        let _ = go_on.await;
        "slow"
    };
    let take = async |body: Body| {
        let mut pieces = body.into_data_stream();
        while let Some(Ok(_)) = pieces.next().await {}
    };
    let endless = async || {
        Body::from_stream(stream::repeat_with(|| {
            Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 16 << 10]))
        }))
    };
    let router = Router::new()
        .route("/", get(async || "hello"))
        .route("/take", post(take))
        .route("/endless", get(endless))
        .route("/slow", get(slow));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (close, closed) = oneshot::channel::<()>();
    let ended = tokio::spawn(serve(listener, router, limits, async { drop(closed.await) }));
    Served { address, came, close: Some(close), ended }
}

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.address).await.unwrap()
}

/// Sends a request over a persistent connection, and reads the response.
async fn ask(stream: &mut TcpStream, path: &str) {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        answer.push(stream.read_u8().await.unwrap());
    }
}

/// Waits until the server has closed the connection, without further data.
async fn is_closed(stream: &mut TcpStream) {
    // Closing with unread data is a reset.
    let rest = stream.read(&mut [0; 64]).await;
    assert!(matches!(rest, Ok(0) | Err(_)), "{rest:?}");
}

#[tokio::test]
async fn limits_of_any_size_are_no_limits() {
    let longest = Duration::MAX;
    let served = served(ConnectionLimits { head: longest, idle: longest, send: longest, ..limits(2) }).await;
    let mut kept = connect(&served).await;
    ask(&mut kept, "/").await;
    ask(&mut kept, "/").await;
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_a_new_one() {
    let served = served(limits(3)).await;
    let mut silent = connect(&served).await;
    let mut partial = connect(&served).await;
    partial.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    let mut kept = connect(&served).await;
    ask(&mut kept, "/").await;
    // The head arrived after the silent connection, and before the other was answered.
    let mut new = Vec::new();
    for idle in [&mut silent, &mut partial, &mut kept] {
        new.push(connect(&served).await);
        ask(new.last_mut().unwrap(), "/").await;
        is_closed(idle).await;
    }
    for kept in &mut new {
        ask(kept, "/").await;
    }
}

#[tokio::test]
async fn an_unfinished_body_makes_room_after_those_that_are_idle() {
    let served = served(limits(2)).await;
    let mut body = connect(&served).await;
    body.write_all(b"POST /take HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nfour").await.unwrap();
    let mut idle = connect(&served).await;
    ask(&mut idle, "/").await;
    let mut first = connect(&served).await;
    ask(&mut first, "/").await;
    is_closed(&mut idle).await;
    let mut second = connect(&served).await;
    ask(&mut second, "/").await;
    is_closed(&mut first).await;
    body.write_all(b"fives").await.unwrap();
    let mut answer = [0; 15];
    body.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
}

#[tokio::test]
async fn what_is_being_answered_never_makes_room() {
    let mut served = served(limits(1)).await;
    let mut asking = connect(&served).await;
    asking.write_all(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let answer = served.came.recv().await.unwrap();
    is_closed(&mut connect(&served).await).await;
    answer.send(()).unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"slow") {
        text.push(asking.read_u8().await.unwrap());
    }
}

/// Advances the clock by a second, and lets all tasks run.
async fn second() {
    advance(Duration::from_secs(1)).await;
    for _ in 0..500 {
        yield_now().await;
    }
}

/// Returns after how many seconds the connection is closed, without further data.
async fn closed_after(stream: &mut TcpStream) -> u64 {
    for seconds in 0..1000 {
        match stream.try_read(&mut [0; 64]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => second().await,
            Ok(0) | Err(_) => return seconds,
            Ok(some) => panic!("{some} bytes came"),
        }
    }
    panic!("it is never closed")
}

#[tokio::test]
async fn a_connection_that_does_nothing_is_closed() {
    still_time();
    let served = served(limits(100)).await;
    let (mut silent, mut partial, mut kept) =
        (connect(&served).await, connect(&served).await, connect(&served).await);
    partial.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    ask(&mut kept, "/").await;
    assert!((14..=30).contains(&closed_after(&mut silent).await));
    assert!(closed_after(&mut partial).await <= 1);
    assert!((44..=75).contains(&closed_after(&mut kept).await));
}

#[tokio::test]
async fn a_head_that_comes_drop_by_drop_has_one_limit_in_all() {
    still_time();
    let served = served(limits(100)).await;
    let mut stream = connect(&served).await;
    let mut seconds = 0;
    while stream.write_all(b"x").await.is_ok() && seconds < 100 {
        second().await;
        seconds += 1;
    }
    assert!((14..=32).contains(&seconds), "closed after {seconds} s");
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_let_go() {
    still_time();
    let served = served(limits(1)).await;
    let mut stuck = connect(&served).await;
    stuck.write_all(b"GET /endless HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    stuck.read_exact(&mut [0; 15]).await.unwrap();
    // Its slot becomes free only when the connection is closed, because its response never ends.
    let mut seconds = 0;
    loop {
        let mut next = connect(&served).await;
        let asked = next.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        if asked.is_ok() && matches!(next.read(&mut [0; 64]).await, Ok(1..)) {
            break;
        }
        second().await;
        seconds += 1;
        assert!(seconds < 100, "it keeps its place");
    }
    assert!(seconds >= 29, "let go after {seconds} s");
}

#[tokio::test]
async fn closing_answers_what_was_asked_and_waits_for_nobody_else() {
    let mut served = served(limits(100)).await;
    let (_silent, mut kept, mut asking) =
        (connect(&served).await, connect(&served).await, connect(&served).await);
    ask(&mut kept, "/").await;
    asking.write_all(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let answer = served.came.recv().await.unwrap();
    drop(served.close.take());
    is_closed(&mut kept).await;
    assert!(!served.ended.is_finished());
    answer.send(()).unwrap();
    let mut text = String::new();
    asking.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("slow"), "{text}");
    served.ended.await.unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}
