//! Somebody who starts a turn at one server, and watches it at whichever server answers.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async, tungstenite::Message};

/// How long a server may be silent before another is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// The addresses of the servers that are meant to be up.
pub(super) type Addresses = Arc<Mutex<Vec<String>>>;

pub(super) struct Person {
    pub(super) addresses: Addresses,
    pub(super) turn: String,
    pub(super) random: fastrand::Rng,
    cursor: Option<String>,
    seen: Seen,
}

/// What was seen of the turn.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The text of completed steps.
    pub(super) text: String,
    step: String,
    pub(super) seals: usize,
    pub(super) cursors: BTreeSet<u64>,
    pub(super) servers: usize,
}

impl Person {
    pub(super) fn new(addresses: Addresses, turn: String, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { addresses, turn, random, cursor: None, seen: Seen::default() }
    }

    /// Starts the turn, and watches it to its end.
    pub(super) async fn take_part(mut self) -> Seen {
        while self.start().await.is_none() {}
        while self.seen.seals == 0 {
            self.seen.servers += 1;
            let _ = self.watch().await;
        }
        self.seen
    }

    async fn address(&mut self) -> Option<String> {
        let address = {
            let addresses = self.addresses.lock().unwrap();
            addresses.get(self.random.usize(..addresses.len().max(1))).cloned()
        };
        if address.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        address
    }

    async fn connect(&mut self) -> Option<WebSocketStream<MaybeTlsStream<TcpStream>>> {
        let address = self.address().await?;
        let connected = async {
            let stream = MaybeTlsStream::Plain(TcpStream::connect(&address).await.ok()?);
            Some(client_async(format!("ws://{address}/ws"), stream).await.ok()?.0)
        };
        timeout(PATIENCE, connected).await.ok()?
    }

    /// Starts the turn. The key makes sure that it starts once, however often it is asked for.
    async fn start(&mut self) -> Option<()> {
        let address = self.address().await?;
        let body = json!({ "conversationId": self.turn, "message": self.turn }).to_string();
        let request = format!(
            "POST /chat HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nIdempotency-Key: {}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.turn,
            body.len()
        );
        let asked = async {
            let mut stream = TcpStream::connect(&address).await.ok()?;
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut status = [0; 12];
            stream.read_exact(&mut status).await.ok()?;
            Some(status)
        };
        let status = timeout(PATIENCE, asked).await.ok()??;
        (&status == b"HTTP/1.1 200").then_some(())
    }

    /// Watches until the turn is sealed; `None` if the server is gone.
    async fn watch(&mut self) -> Option<()> {
        let mut socket = self.connect().await?;
        let cursor = self.cursor.as_deref().unwrap_or("0");
        let command = json!({ "type": "chat.subscribe", "conversationId": self.turn, "cursor": cursor, "extensions": true });
        socket.send(Message::text(command.to_string())).await.ok()?;
        // Some move on although nothing is wrong.
        let mut most = self.random.usize(1..40);
        while self.seen.seals == 0 && most > 0 {
            let message = hear(&mut socket).await?;
            if message["type"] == "chat.delta" {
                most -= 1;
                self.see(&message);
            }
        }
        Some(())
    }

    fn see(&mut self, delta: &Value) {
        let cursor = delta["cursor"].as_str().unwrap();
        let at: u64 = cursor.parse().unwrap();
        assert!(self.seen.cursors.last().is_none_or(|last| *last < at), "{}: {delta} came again", self.turn);
        self.seen.cursors.insert(at);
        self.cursor = Some(cursor.to_owned());
        let event = &delta["event"];
        match event["type"].as_str().unwrap() {
            "text-delta" => self.seen.step.push_str(event["delta"].as_str().unwrap()),
            "step-rewound" => self.seen.step.clear(),
            "step-complete" => self.seen.text.push_str(&std::mem::take(&mut self.seen.step)),
            "turn-sealed" => self.seen.seals += 1,
            _ => {}
        }
    }
}

/// Returns the next message; `None` if the server is gone or silent.
async fn hear(socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>) -> Option<Value> {
    loop {
        let message = timeout(PATIENCE, socket.next()).await.ok()??.ok()?;
        if let Message::Text(text) = message {
            return serde_json::from_str(&text).ok();
        }
    }
}
