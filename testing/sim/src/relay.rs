//! A relay between clients and servers that can lose what they send.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What a relay does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Relays everything.
    Relay,
    /// Relays what clients send, and drops the answers.
    DropAnswers,
    /// Drops what clients send, and relays the answers.
    DropRequests,
    /// Drops everything.
    DropAll,
}

/// A relay to servers. A change of its mode closes its connections, except when it begins to drop something.
#[derive(Debug)]
pub struct Relay {
    /// The address for clients, as `host:port`.
    pub address: String,
    /// What it does.
    pub mode: watch::Sender<Mode>,
}

impl Relay {
    /// Starts a relay that connects its clients to these addresses, `host:port`, in turn. It ends with the runtime.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn to(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let servers: Vec<String> = servers.into_iter().map(Into::into).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address").to_string();
        let (mode, modes) = watch::channel(Mode::Relay);
        tokio::spawn(async move {
            for server in servers.iter().cycle() {
                let Ok((client, _)) = listener.accept().await else { return };
                // It may be down: the client tries again, and reaches the next.
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pump(from_client, to_server, modes.clone(), Mode::DropRequests));
                tokio::spawn(pump(from_server, to_client, modes.clone(), Mode::DropAnswers));
            }
        });
        Self { address, mode }
    }
}

/// Relays in one direction, unless the mode drops it. Ends when relaying begins again.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
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
