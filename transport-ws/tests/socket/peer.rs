//! A WebSocket client.

use std::net::SocketAddr;

use everturn_wire::Value;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Message, client::IntoClientRequest as _, handshake::client::Request, http::StatusCode,
        protocol::CloseFrame,
    },
};

/// A WebSocket client.
pub(crate) struct Peer {
    pub(crate) socket: WebSocketStream<TcpStream>,
}

impl Peer {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::open(address, request(address, "/ws")).await.unwrap()
    }

    /// Opens a socket. If it is refused, returns the status and body of the response.
    pub(crate) async fn open(address: SocketAddr, request: Request) -> Result<Self, (StatusCode, String)> {
        Self::open_over(TcpStream::connect(address).await.unwrap(), request).await
    }

    /// Opens a socket with small system buffers.
    pub(crate) async fn connect_narrow(address: SocketAddr) -> Self {
        let stream = TcpSocket::new_v4().unwrap();
        stream.set_recv_buffer_size(16 << 10).unwrap();
        let stream = stream.connect(address).await.unwrap();
        Self::open_over(stream, request(address, "/ws")).await.unwrap()
    }

    async fn open_over(stream: TcpStream, request: Request) -> Result<Self, (StatusCode, String)> {
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(tokio_tungstenite::tungstenite::Error::Http(refused)) => {
                let body = refused.body().clone().unwrap_or_default();
                Err((refused.status(), String::from_utf8(body).unwrap()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends a command.
    pub(crate) async fn say(&mut self, command: Value) {
        self.send(Message::text(command.to_string())).await;
    }

    /// Sends commands without pauses.
    pub(crate) async fn say_all(&mut self, commands: impl IntoIterator<Item = Value>) {
        for command in commands {
            self.socket.feed(Message::text(command.to_string())).await.unwrap();
        }
        self.socket.flush().await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    /// Returns the next message that is not about a status.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.hear_text().await).unwrap();
            if message["type"] != "conversation.statusChanged" {
                return message;
            }
        }
    }

    /// Returns the next message about a status.
    pub(crate) async fn hear_status(&mut self) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.hear_text().await).unwrap();
            if message["type"] == "conversation.statusChanged" {
                return message;
            }
        }
    }

    /// Returns the next text frame, verbatim.
    pub(crate) async fn hear_text(&mut self) -> String {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Text(text) => return text.to_string(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    /// Returns the close frame. Only statuses may precede it.
    pub(crate) async fn end(&mut self) -> CloseFrame {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Close(end) => return end.unwrap(),
                Message::Text(text) => assert!(text.contains("conversation.statusChanged"), "{text}"),
                _ => {}
            }
        }
    }

    /// Returns the next event of a turn.
    pub(crate) async fn event(&mut self) -> Value {
        loop {
            let message = self.hear().await;
            if message["type"] == "retry.settingsChanged" {
                continue;
            }
            assert_eq!(message["type"], "chat.delta", "{message}");
            if message["event"]["type"] != "status" {
                return message["event"].clone();
            }
        }
    }

    /// Returns the answer to a command that has one. Only statuses may precede it.
    pub(crate) async fn answer_to(&mut self, command: Value) -> Value {
        self.say(command).await;
        let mut answer = self.hear().await;
        while answer["event"]["type"] == "status" {
            answer = self.hear().await;
        }
        answer
    }

    /// Waits until all commands so far have been executed.
    pub(crate) async fn sync(&mut self) {
        self.say(json!({ "type": "?" })).await;
        while self.hear().await["type"] != "error" {}
    }

    /// Returns events up to and including the first of this type.
    pub(crate) async fn events_until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.event().await);
            if events[events.len() - 1]["type"] == kind {
                return events;
            }
        }
    }
}

/// Returns the request that opens a socket.
pub(crate) fn request(address: SocketAddr, path: &str) -> Request {
    format!("ws://{address}{path}").into_client_request().unwrap()
}

/// Returns the types of events, in order.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// Returns the concatenated streamed text of events.
pub(crate) fn text(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "text-delta");
    deltas.map(|event| event["delta"].as_str().unwrap()).collect()
}
