use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::chat;

/// A client without a library, which reads exactly what was sent.
struct Client {
    stream: TcpStream,
    read: BytesMut,
}

impl Client {
    async fn connect(server: &Loopback) -> Self {
        Self { stream: TcpStream::connect(server.address()).await.unwrap(), read: BytesMut::new() }
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    async fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
    }

    /// Reads up to and including the mark.
    async fn until(&mut self, mark: &str) -> String {
        while !self.read.ends_with(mark.as_bytes()) {
            assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "ended before {mark:?}");
        }
        String::from_utf8(self.read.split().to_vec()).unwrap()
    }

    /// Reads to the end of the connection. Returns the data, and the error that ended it, if any.
    async fn rest(&mut self) -> (String, Option<io::ErrorKind>) {
        let error = loop {
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error.kind()),
            }
        };
        (String::from_utf8_lossy(&self.read.split()).into_owned(), error)
    }

    /// Sends one request on its own connection, and returns everything received.
    async fn once(server: &Loopback) -> (String, Option<io::ErrorKind>) {
        let mut client = Self::connect(server).await;
        client.get("/").await;
        client.rest().await
    }
}

/// Returns what follows the head.
fn body(wire: &str) -> &str {
    wire.split_once("\r\n\r\n").map_or("no head", |(_, body)| body)
}

#[tokio::test]
async fn requests_are_counted_with_all_they_carry() {
    let server = Loopback::start([Reply::status(200)]).await;
    let mut client = Client::connect(&server).await;
    client
        .send("POST /v1/chat?x=1 HTTP/1.1\r\nHost: a\r\nX-Key: k: v \r\nContent-Length: 7\r\n\r\n{\"a\":1}")
        .await;
    client.until("\r\n\r\n").await;
    client
        .send("PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nt: u\r\n\r\n")
        .await;
    client.until("\r\n\r\n").await;
    let mut second = Client::connect(&server).await;
    second.get("/two").await;
    second.until("\r\n\r\n").await;

    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/v1/chat?x=1"));
    assert_eq!(requests[0].header("x-kEY"), Some("k: v"));
    assert_eq!(requests[0].json().unwrap()["a"], 1);
    assert_eq!(&requests[1].body[..], b"abc0123456789");
    assert_eq!((requests[2].index, requests[2].connection), (2, 1));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_script_runs_in_order_across_connections_and_repeats_its_last_reply() {
    let server = Loopback::start([500, 429, 200].map(|status| Reply::status(status).close_delimited())).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(Client::once(&server).await.0[9..12].to_owned());
    }
    assert_eq!(seen, ["500", "429", "200", "200"]);
}

#[tokio::test]
async fn an_empty_script_is_reported() {
    let server = Loopback::start([]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    assert!(client.until("no reply").await.starts_with("HTTP/1.1 500 "));
}

#[tokio::test]
async fn a_closure_chooses_by_request() {
    let server = Loopback::with(|request| Reply::status(200).body(request.path.clone())).await;
    let mut client = Client::connect(&server).await;
    client.get("/one").await;
    client.until("/one").await;
    client.get("/two").await;
    client.until("/two").await;
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn the_three_framings() {
    let reply = Reply::status(200).header("x-a", "b").body("hello").split_at([2]);
    let server = Loopback::start([
        reply.clone().content_length(),
        reply.clone().chunked(),
        reply.clone().close_delimited(),
    ])
    .await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    assert_eq!(client.until("hello").await, "HTTP/1.1 200 \r\nx-a: b\r\ncontent-length: 5\r\n\r\nhello");
    client.get("/").await;
    assert_eq!(
        client.until("\r\n0\r\n\r\n").await,
        "HTTP/1.1 200 \r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
    );
    client.get("/").await;
    assert_eq!(
        client.rest().await,
        ("HTTP/1.1 200 \r\nx-a: b\r\nconnection: close\r\n\r\nhello".into(), None)
    );
}

#[tokio::test]
async fn a_cut_is_exact_at_every_offset_in_every_framing() {
    let text = "0123456789";
    for offset in 0..=text.len() + 1 {
        let cut = Reply::status(200).body(text).split_at([4]).cut_at(offset);
        let sent = &text[..offset.min(text.len())];
        for reply in [cut.clone(), cut.clone().close_delimited()] {
            let server = Loopback::start([reply]).await;
            let (wire, error) = Client::once(&server).await;
            assert_eq!((body(&wire), error), (sent, None), "cut at {offset}");
        }
        let server = Loopback::start([cut.chunked()]).await;
        let (wire, error) = Client::once(&server).await;
        let chunked = match offset {
            0 => String::new(),
            1..4 => format!("4\r\n{sent}"),
            4 => "4\r\n0123\r\n".into(),
            5..10 => format!("4\r\n0123\r\n6\r\n{}", &sent[4..]),
            _ => "4\r\n0123\r\n6\r\n456789\r\n".into(),
        };
        assert_eq!((body(&wire), error), (chunked.as_str(), None), "cut at {offset}");
    }
}

#[tokio::test]
async fn a_reset_is_a_reset_after_its_bytes() {
    for offset in [0, 1, 5, 9] {
        let server = Loopback::start([Reply::status(200).body("hello").reset_at(offset)]).await;
        let (wire, error) = Client::once(&server).await;
        assert_eq!(body(&wire), &"hello"[..offset.min(5)]);
        assert_eq!(error, Some(io::ErrorKind::ConnectionReset));
    }
}

#[tokio::test]
async fn a_connection_can_end_before_the_head() {
    let server = Loopback::start([Reply::hang_up(), Reply::reset()]).await;
    assert_eq!(Client::once(&server).await, (String::new(), None));
    assert_eq!(Client::once(&server).await, (String::new(), Some(io::ErrorKind::ConnectionReset)));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_hang_up_is_not_a_reset_even_if_the_client_sent_more() {
    let gate = Gate::new();
    let server = Loopback::start([Reply::hang_up().stall_at(0, &gate)]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    gate.reached().await;
    client.send("more, while the server waits").await;
    gate.open();
    assert_eq!(client.rest().await, (String::new(), None));
    client.send("and more, after it ended").await;
}

#[tokio::test]
async fn raw_bytes_are_sent_verbatim() {
    let server =
        Loopback::start([Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc").split_every(1)]).await;
    let wire = Client::once(&server).await.0;
    assert_eq!(wire, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc");
}

#[tokio::test]
async fn every_byte_can_be_a_separate_chunk() {
    let server = Loopback::start([Reply::sse(["é", "b"]).split_every(1)]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    let mut wire = Vec::new();
    while !wire.ends_with(b"0\r\n\r\n") {
        assert_ne!(client.stream.read_buf(&mut wire).await.unwrap(), 0);
    }
    assert!(wire.ends_with(b"\r\n\r\n1\r\n\xc3\r\n1\r\n\xa9\r\n1\r\nb\r\n0\r\n\r\n"), "{wire:?}");
}

/// Between two writes, the client gets a chance to run, so a split is a separate read.
#[tokio::test]
async fn a_split_arrives_as_a_separate_read() {
    let server = Loopback::start([Reply::raw("abcdef").split_at([1, 4])]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    let mut reads = Vec::new();
    loop {
        let mut read = [0; 64];
        match client.stream.read(&mut read).await.unwrap() {
            0 => break,
            n => reads.push(String::from_utf8_lossy(&read[..n]).into_owned()),
        }
    }
    assert_eq!(reads, ["a", "bcd", "ef"]);
}

#[tokio::test]
async fn nothing_passes_a_closed_gate() {
    let (head, middle, end) = (Gate::new(), Gate::new(), Gate::new());
    let reply = Reply::status(200).body("hello").chunked();
    let reply = reply.hold(&head).stall_at(2, &middle).stall_at(usize::MAX, &end);
    let server = Loopback::start([reply]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    server.arrived(1).await;
    let nothing = |client: &Client| client.stream.try_read(&mut [0]).map_err(|error| error.kind());

    head.reached().await;
    assert_eq!(nothing(&client), Err(io::ErrorKind::WouldBlock));
    head.open();
    client.until("\r\n\r\n2\r\nhe\r\n").await;
    middle.reached().await;
    assert_eq!(nothing(&client), Err(io::ErrorKind::WouldBlock));
    middle.open();
    client.until("3\r\nllo\r\n").await;
    end.reached().await;
    assert_eq!(nothing(&client), Err(io::ErrorKind::WouldBlock));
    end.open();
    client.until("0\r\n\r\n").await;
}

#[tokio::test]
async fn a_gate_can_stand_before_a_frame_and_before_a_cut() {
    let gate = Gate::new();
    let server = Loopback::start([Reply::sse(["ab", "cd", "ef"]).stall_before(1, &gate).reset_at(2)]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    client.until("2\r\nab\r\n").await;
    gate.reached().await;
    gate.open();
    assert_eq!(client.rest().await, (String::new(), Some(io::ErrorKind::ConnectionReset)));
}

#[tokio::test]
async fn a_gate_behind_the_cut_is_not_waited_for() {
    let server =
        Loopback::start([Reply::status(200).body("hello").stall_at(4, &Gate::new()).cut_at(3)]).await;
    assert_eq!(body(&Client::once(&server).await.0), "hel");
}

#[tokio::test]
async fn a_client_that_disconnects_is_noticed_while_the_reply_stalls() {
    let server = Loopback::start([Reply::status(200).hold(&Gate::new())]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    server.arrived(1).await;
    assert_eq!(server.counts().open, 1);
    drop(client);
    let counts = server.until(|counts| counts.open == 0).await;
    assert_eq!((counts.abandoned, counts.requests), (1, 1));
}

#[tokio::test]
async fn a_client_that_disconnects_after_the_end_abandoned_nothing() {
    let server = Loopback::start([chat::text(["a"]).reply()]).await;
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    client.until("0\r\n\r\n").await;
    drop(client);
    assert_eq!(server.until(|counts| counts.open == 0).await.abandoned, 0);
}

#[tokio::test]
async fn invalid_and_oversized_requests_are_rejected() {
    let line = "GET / HTTP/1.1\r\n";
    let cases = [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (format!("{line}no colon\r\n\r\n"), "400"),
        (format!("{line}content-length: -1\r\n\r\n"), "400"),
        (format!("{line}a: {}\r\n\r\n", "x".repeat(70 * 1024)), "431"),
        (format!("{line}content-length: 67108865\r\n\r\n"), "413"),
        (format!("{line}transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n"), "413"),
        (format!("{line}transfer-encoding: chunked\r\n\r\nxyz\r\n"), "400"),
        (format!("{line}transfer-encoding: chunked\r\n\r\n1\r\nab\r\n"), "400"),
    ];
    for (number, (request, status)) in cases.into_iter().enumerate() {
        let server = Loopback::start([Reply::status(200)]).await;
        let mut client = Client::connect(&server).await;
        client.send(request).await;
        let (wire, error) = client.rest().await;
        assert_eq!((&wire[9..12], error), (status, None), "case {number}");
        assert_eq!((server.counts().rejected, server.counts().requests), (1, 0));
    }
}

#[tokio::test]
async fn dropping_the_server_closes_everything() {
    let server = Loopback::start([Reply::status(200).body("hello").stall_at(2, &Gate::new())]).await;
    let address = server.address();
    let mut client = Client::connect(&server).await;
    client.get("/").await;
    client.until("he").await;
    drop(server);
    assert_eq!(client.rest().await, (String::new(), None));
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_closed_port_refuses_until_it_opens() {
    let port = ClosedPort::reserve().unwrap();
    let address = port.base_url();
    let refused = TcpStream::connect(address.trim_start_matches("http://")).await;
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    let server = port.open([Reply::hang_up()]).unwrap();
    assert_eq!(server.base_url(), address);
    assert_eq!(Client::once(&server).await, (String::new(), None));
}
