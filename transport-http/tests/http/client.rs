//! An HTTP client: one connection per call.

use std::net::SocketAddr;

use axum::body::{Body, BodyDataStream};
use everturn_wire::{ErrorBody, Value};
use futures_util::StreamExt as _;
use hyper::{HeaderMap, Method, Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A response whose body has not been read yet.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: BodyDataStream,
    /// Received bytes of the body that were not taken yet.
    unread: Vec<u8>,
}

/// Begins a request. It names the host unless another header does.
pub(crate) fn request(method: Method, address: SocketAddr, path: &str) -> hyper::http::request::Builder {
    Request::builder().method(method).uri(path).header(HOST, address.to_string())
}

pub(crate) async fn call(address: SocketAddr, request: Request<Body>) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = Body::new(body).into_data_stream();
    Answer { status: head.status, headers: head.headers, body, unread: Vec::new() }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    call(address, request(Method::GET, address, path).body(Body::empty()).unwrap()).await
}

pub(crate) async fn delete(address: SocketAddr, path: &str) -> Answer {
    call(address, request(Method::DELETE, address, path).body(Body::empty()).unwrap()).await
}

/// Sends a PATCH request with a JSON body.
pub(crate) async fn patch(address: SocketAddr, path: &str, body: Value) -> Answer {
    let request = request(Method::PATCH, address, path).header("content-type", "application/json");
    call(address, request.body(Body::from(body.to_string())).unwrap()).await
}

/// Sends a POST request with a JSON body; `Null` = no body.
pub(crate) async fn post(address: SocketAddr, path: &str, body: Value) -> Answer {
    let request = request(Method::POST, address, path);
    let request = match body {
        Value::Null => request.body(Body::empty()),
        body => request.header("content-type", "application/json").body(Body::from(body.to_string())),
    };
    call(address, request.unwrap()).await
}

/// Sends a POST request with a JSON body and an idempotency key.
pub(crate) async fn post_keyed(address: SocketAddr, path: &str, key: &str, body: Value) -> Answer {
    let request = request(Method::POST, address, path).header("content-type", "application/json");
    call(address, request.header("idempotency-key", key).body(Body::from(body.to_string())).unwrap()).await
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap().to_str().unwrap()
    }

    /// Returns the whole body, which must end.
    pub(crate) async fn text(mut self) -> String {
        while self.more().await {}
        String::from_utf8(self.unread).unwrap()
    }

    /// Returns the body up to its end, or to where it is cut off, and whether it is.
    pub(crate) async fn rest(mut self) -> (String, bool) {
        let is_cut_off = loop {
            match self.body.next().await {
                Some(Ok(bytes)) => self.unread.extend(bytes),
                Some(Err(_)) => break true,
                None => break false,
            }
        };
        (String::from_utf8_lossy(&self.unread).into_owned(), is_cut_off)
    }

    pub(crate) async fn json(self) -> Value {
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// Returns the error message of a refusal.
    pub(crate) async fn error(self) -> String {
        assert!(self.status.is_client_error() || self.status.is_server_error(), "{}", self.status);
        let ErrorBody { error } = serde_json::from_value(self.json().await).unwrap();
        error
    }

    /// Returns the body up to, but not including, the next mark; `None` at its end.
    pub(crate) async fn until(&mut self, mark: &str) -> Option<String> {
        loop {
            let found = self.unread.windows(mark.len()).position(|bytes| bytes == mark.as_bytes());
            if let Some(at) = found {
                let text = self.unread.drain(..at + mark.len()).take(at).collect();
                return Some(String::from_utf8(text).unwrap());
            }
            if !self.more().await {
                assert!(self.unread.is_empty(), "{:?}", self.unread);
                return None;
            }
        }
    }

    /// Returns the next line of NDJSON.
    pub(crate) async fn line(&mut self) -> Option<String> {
        self.until("\n").await
    }

    /// Returns the id and data of the next server-sent event.
    pub(crate) async fn event(&mut self) -> (String, String) {
        let event = loop {
            let event = self.until("\n\n").await.unwrap();
            if event.contains("data:") {
                break event;
            }
        };
        let (id, data) = event.split_once('\n').unwrap();
        (id.strip_prefix("id: ").unwrap().to_owned(), data.strip_prefix("data: ").unwrap().to_owned())
    }

    /// Whether the body is truncated here.
    pub(crate) async fn is_cut_off(&mut self) -> bool {
        assert!(self.unread.is_empty(), "{:?}", self.unread);
        matches!(self.body.next().await, Some(Err(_)))
    }

    async fn more(&mut self) -> bool {
        match self.body.next().await {
            Some(bytes) => self.unread.extend(bytes.unwrap()),
            None => return false,
        }
        true
    }
}
