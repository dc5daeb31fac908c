//! A relay between clients and servers, which loses or holds back what it relays.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};

/// What a relay does with its connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    /// Relays everything.
    Relay,
    /// Relays what clients send, and drops the answers.
    DropAnswers,
    /// Drops everything.
    DropAll,
}

/// A relay to servers. A change of its mode closes its connections, except when it begins to drop something.
pub(crate) struct Relay {
    pub(crate) url: String,
    pub(crate) mode: watch::Sender<Mode>,
}

impl Relay {
    /// Relays connections to these servers, in turn.
    pub(crate) async fn to(servers: impl IntoIterator<Item = String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let (mode, modes) = watch::channel(Mode::Relay);
        let servers: Vec<_> = servers.into_iter().collect();
        tokio::spawn(async move {
            for server in servers.iter().cycle() {
                let Ok((client, _)) = listener.accept().await else { return };
                // It may be down: the client tries again, and reaches the next.
                let server = TcpStream::connect(server.strip_prefix("nats://").unwrap()).await;
                let Ok(server) = server else { continue };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pump(from_client, to_server, modes.clone(), Mode::DropAll));
                tokio::spawn(pump(from_server, to_client, modes.clone(), Mode::DropAnswers));
            }
        });
        Self { url, mode }
    }

    /// Drops answers, or everything, from time to time, until it is dropped.
    pub(crate) async fn disturb(&self, mut random: fastrand::Rng) {
        loop {
            sleep(Duration::from_millis(random.u64(20..150))).await;
            let drops = if random.u8(..4) == 0 { Mode::DropAll } else { Mode::DropAnswers };
            self.mode.send_replace(drops);
            sleep(Duration::from_millis(random.u64(20..400))).await;
            self.mode.send_replace(Mode::Relay);
        }
    }
}

/// Relays in one direction, unless the mode drops it. Ends when relaying begins again.
async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut modes: watch::Receiver<Mode>,
    drops: Mode,
) {
    let (mut bytes, mut has_dropped) = (vec![0; 64 << 10], false);
    loop {
        let read = tokio::select! {
            read = from.read(&mut bytes) => read.unwrap_or(0),
            _ = modes.changed() => {
                if has_dropped && *modes.borrow_and_update() == Mode::Relay {
                    return;
                }
                continue;
            }
        };
        let mode = *modes.borrow_and_update();
        has_dropped |= mode != Mode::Relay;
        if read == 0 || (has_dropped && mode == Mode::Relay) {
            return;
        }
        if mode != Mode::DropAll && mode != drops && to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
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
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let left = watch::Sender::new(usize::MAX);
        let (gate, open) = (left.clone(), watch::Sender::new(usize::MAX));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server.strip_prefix("nats://").unwrap()).await.unwrap();
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
