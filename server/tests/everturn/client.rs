//! Clients of a server: plain HTTP, line-based, and WebSocket.

use std::{future::poll_fn, pin::Pin};

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::{
    HeaderMap, Method, Request,
    body::{Body as _, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

use crate::home::{DEADLINE, Server};

/// A response whose body arrives piece by piece.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
}

pub(crate) async fn get(server: &Server, path: &str) -> Response {
    send(server, Method::GET, path, &[], String::new()).await
}

pub(crate) async fn post(server: &Server, path: &str, body: &Value) -> Response {
    send(server, Method::POST, path, &[("content-type", "application/json")], body.to_string()).await
}

pub(crate) async fn send(
    server: &Server,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Response {
    try_send(server, method, path, headers, body).await.expect("an answer")
}

/// Like [`send`]; `None` if the server is gone before it answers.
pub(crate) async fn try_send(
    server: &Server,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Option<Response> {
    let stream = TcpStream::connect(server.authority()).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let host = [("host", server.authority())];
    let request = Request::builder().method(method).uri(path);
    let request =
        host.iter().chain(headers).fold(request, |request, (name, value)| request.header(*name, *value));
    let answer = timeout(DEADLINE, sender.send_request(request.body(body).unwrap()));
    let (head, body) = answer.await.expect("an answer in time").ok()?.into_parts();
    Some(Response { status: head.status.as_u16(), headers: head.headers, body, buffer: Vec::new() })
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the next line; `None` at the end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    pub(crate) async fn bytes(mut self) -> Vec<u8> {
        while self.fill().await {}
        self.buffer
    }

    pub(crate) async fn text(self) -> String {
        String::from_utf8(self.bytes().await).unwrap()
    }

    /// Returns the whole body; `None` if the server is gone meanwhile.
    pub(crate) async fn try_text(mut self) -> Option<String> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            match timeout(DEADLINE, frame).await.expect("more of the body in time") {
                Some(frame) => self.buffer.extend_from_slice(&frame.ok()?.into_data().unwrap_or_default()),
                None => return String::from_utf8(self.buffer).ok(),
            }
        }
    }

    pub(crate) async fn json(self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    async fn fill(&mut self) -> bool {
        let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
        match timeout(DEADLINE, frame).await.expect("more of the body in time") {
            Some(frame) => {
                self.buffer.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
                true
            }
            None => false,
        }
    }
}

/// Returns the events of a stream, up to and including the end of its turn.
pub(crate) async fn ndjson(mut response: Response) -> Vec<Value> {
    let mut events = Vec::new();
    while let Some(line) = response.line().await {
        events.push(serde_json::from_str(&line).unwrap());
    }
    events
}

/// Like [`ndjson`], for an event stream, which does not end.
pub(crate) async fn sse(mut response: Response) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    while events.last().is_none_or(|event| event["type"] != "turn-sealed") {
        let line = response.line().await.expect("an event stream does not end");
        events.extend(line.strip_prefix("data:").map(|data| serde_json::from_str(data).unwrap()));
    }
    events
}

/// A WebSocket client.
pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub(crate) async fn open(server: &Server, path: &str) -> Self {
        Self::try_open(server, path).await.expect("a socket")
    }

    /// Opens a socket with this token.
    pub(crate) async fn open_as(server: &Server, path: &str, token: &str) -> Self {
        Self::try_open_as(server, path, token).await.expect("a socket")
    }

    /// Like [`Self::open_as`]; `None` if the server is gone.
    pub(crate) async fn try_open_as(server: &Server, path: &str, token: &str) -> Option<Self> {
        let url = format!("ws://{}{path}", server.authority());
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        Some(Self(connect_async(request).await.ok()?.0))
    }

    /// Returns `None` if the server is gone.
    pub(crate) async fn try_open(server: &Server, path: &str) -> Option<Self> {
        let request = format!("ws://{}{path}", server.authority()).into_client_request().unwrap();
        Some(Self(connect_async(request).await.ok()?.0))
    }

    pub(crate) async fn say(&mut self, command: &Value) {
        assert!(self.try_say(command).await, "the server is gone");
    }

    /// Returns false if the server is gone.
    pub(crate) async fn try_say(&mut self, command: &Value) -> bool {
        self.0.send(Message::text(command.to_string())).await.is_ok()
    }

    /// Returns the next message of this type.
    pub(crate) async fn hear(&mut self, kind: &str) -> Value {
        self.try_hear(kind).await.expect("a message")
    }

    /// Like [`Self::hear`]; `None` if the server is gone.
    pub(crate) async fn try_hear(&mut self, kind: &str) -> Option<Value> {
        loop {
            let message = timeout(DEADLINE, self.0.next()).await.expect("a message in time")?;
            if let Message::Text(text) = message.ok()? {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == kind {
                    return Some(message);
                }
            }
        }
    }

    /// Returns the close code, and skips earlier messages.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            let message = timeout(DEADLINE, self.0.next()).await.expect("an end in time").unwrap().unwrap();
            if let Message::Close(end) = message {
                return end.unwrap().code.into();
            }
        }
    }

    /// Returns the next event.
    pub(crate) async fn event(&mut self) -> Value {
        self.hear("chat.delta").await["event"].take()
    }

    /// Returns all events up to and including the next of this type.
    pub(crate) async fn events(&mut self, last: &str) -> Vec<Value> {
        let mut events = Vec::new();
        while events.last().is_none_or(|event: &Value| event["type"] != last) {
            events.push(self.event().await);
        }
        events
    }
}
