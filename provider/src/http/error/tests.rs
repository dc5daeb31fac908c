//! Errors of real sockets, classified by structure.

use everturn_sim::{ClosedPort, Loopback, Reply};
use http_body_util::Full;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::{HttpClient, HttpConfig};

use super::*;

async fn fault(address: &str) -> ConnectionError {
    let http = HttpClient::new(HttpConfig { system_proxy: false, ..HttpConfig::default() }).unwrap();
    let address = format!("{address}/some/path?key=value");
    let request = hyper::Request::post(address).body(Full::default());
    let fault = match http.send(request).await {
        Ok(mut response) => loop {
            match response.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("no fault"),
                Err(fault) => break fault,
            }
        },
        Err(fault) => fault,
    };
    for part in ["127.0.0.1", "some/path", "value", "://"] {
        assert!(!fault.text.contains(part), "no address: {}", fault.text);
    }
    fault
}

/// Answers the first bytes of a TLS handshake with `bytes`, then closes the connection.
async fn handshake_answered(bytes: &'static [u8]) -> ConnectionError {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).await.unwrap();
        let mut rest = vec![0; usize::from(u16::from_be_bytes([hello[3], hello[4]]))];
        stream.read_exact(&mut rest).await.unwrap();
        stream.write_all(bytes).await.unwrap();
    });
    fault(&format!("https://{address}")).await
}

#[tokio::test]
async fn a_failed_connection() {
    let refused = fault(&ClosedPort::reserve().unwrap().base_url()).await;
    assert_eq!(refused.kind, Transport::Connect, "{}", refused.text);
    assert!(refused.text.ends_with("Connection refused (os error 111)") || !cfg!(target_os = "linux"));
    let unresolved = fault(&format!("http://{}.invalid", "x".repeat(64))).await;
    assert_eq!(unresolved.kind, Transport::Dns, "{}", unresolved.text);
}

#[tokio::test]
async fn a_failed_handshake() {
    let plain = handshake_answered(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    assert_eq!(plain.kind, Transport::Tls, "{}", plain.text);
    let alert = handshake_answered(&[21, 3, 3, 0, 2, 2, 40]).await;
    assert_eq!(alert.kind, Transport::Tls, "{}", alert.text);
    let ended = handshake_answered(b"").await;
    assert_eq!(ended.kind, Transport::Connect, "{}", ended.text);
}

#[tokio::test]
async fn an_interrupted_connection() {
    let body = || Reply::status(200).chunked().body("0123456789");
    for reply in [
        Reply::hang_up(),
        Reply::reset(),
        Reply::raw("HTTP/1.1 200"),
        body().cut_at(0),
        body().cut_at(5),
        body().reset_at(5),
        body().content_length().cut_at(5),
        body().content_length().reset_at(5),
        body().close_delimited().reset_at(5),
    ] {
        let server = Loopback::start([reply.clone()]).await;
        let cut = fault(&server.base_url()).await;
        assert_eq!(cut.kind, Transport::Cut, "{} of {reply:?}", cut.text);
    }
}

#[tokio::test]
async fn a_response_that_is_not_http_is_not_a_broken_connection() {
    for wire in ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"]
    {
        let server = Loopback::start([Reply::raw(wire)]).await;
        let odd = fault(&server.base_url()).await;
        assert_eq!(odd.kind, Transport::Other, "{}", odd.text);
    }
}
