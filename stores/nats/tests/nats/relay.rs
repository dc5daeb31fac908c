//! Relays between clients and servers, which lose or hold back what they relay.

use std::time::Duration;

use everturn_sim::relay::{Mode, Relay};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};

/// The beginning of a server's URL.
const SCHEME: &str = "nats://";

/// Starts a relay to the servers with these URLs. Returns also the URL for its clients.
pub(crate) async fn relay(servers: impl IntoIterator<Item = String>) -> (Relay, String) {
    let addresses = servers.into_iter().map(|url| url.strip_prefix(SCHEME).unwrap().to_owned());
    let relay = Relay::to(addresses).await;
    let url = format!("{SCHEME}{}", relay.address);
    (relay, url)
}

/// Drops answers, or everything, from time to time, until the future is dropped.
pub(crate) async fn disturb(relay: &Relay, mut random: fastrand::Rng) {
    loop {
        sleep(Duration::from_millis(random.u64(20..150))).await;
        let drops = if random.u8(..4) == 0 { Mode::DropAll } else { Mode::DropAnswers };
        relay.mode.send_replace(drops);
        sleep(Duration::from_millis(random.u64(20..400))).await;
        relay.mode.send_replace(Mode::Relay);
    }
}

/// A relay that passes on a number of bytes in one direction, then none until it is told to continue.
pub(crate) struct Gate {
    pub(crate) url: String,
    left: watch::Sender<usize>,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the server.
    Requests,
    /// From the server.
    Answers,
}

impl Gate {
    /// Opens a gate to a server, which lets everything pass in the other direction.
    pub(crate) async fn to(server: String, direction: Direction) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{SCHEME}{}", listener.local_addr().unwrap());
        let left = watch::Sender::new(usize::MAX);
        let (gate, open) = (left.clone(), watch::Sender::new(usize::MAX));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server.strip_prefix(SCHEME).unwrap()).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                let (requests, answers) = match direction {
                    Direction::Requests => (&gate, &open),
                    Direction::Answers => (&open, &gate),
                };
                tokio::spawn(pass(from_client, to_server, requests.clone()));
                tokio::spawn(pass(from_server, to_client, answers.clone()));
            }
        });
        Self { url, left }
    }

    /// Lets only so many more bytes pass.
    pub(crate) fn close_after(&self, bytes: usize) {
        self.left.send_replace(bytes);
    }

    /// Lets everything pass again.
    pub(crate) fn open(&self) {
        self.left.send_replace(usize::MAX);
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        self.left.subscribe().wait_for(|left| *left == 0).await.unwrap();
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    left: watch::Sender<usize>,
) {
    let (mut bytes, mut changes) = (vec![0; 64 << 10], left.subscribe());
    while let Ok(read) = from.read(&mut bytes).await
        && read > 0
    {
        let mut rest = &bytes[..read];
        while !rest.is_empty() {
            if changes.wait_for(|left| *left > 0).await.is_err() {
                return;
            }
            let mut some = 0;
            left.send_modify(|left| {
                some = rest.len().min(*left);
                *left = if *left == usize::MAX { *left } else { *left - some };
            });
            if to.write_all(&rest[..some]).await.is_err() {
                return;
            }
            rest = &rest[some..];
        }
    }
}
