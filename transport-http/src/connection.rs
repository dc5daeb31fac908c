//! Accepts connections, and limits their resources.

mod activity;
mod drive;
mod intake;
mod open;
mod tls;
mod watched;

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

use intake::Intake;
use open::Open;

use crate::limits::FAR;
pub use tls::{Certificate, CertificateError};

/// The address that a request comes from, in its extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections. A further one replaces the connection that has been idle longest; if none is
    /// idle, it is closed.
    pub connections: usize,
    /// Maximum time until a new connection begins a request, and for the head of a request.
    pub head: Duration,
    /// Maximum time between two requests on a connection.
    pub idle: Duration,
    /// Maximum time for which a client may accept no part of a response being sent.
    pub send: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            head: Duration::from_secs(15),
            // Longer than most proxies keep their connections, so that the proxy closes first.
            idle: Duration::from_secs(75),
            send: Duration::from_secs(30),
        }
    }
}

/// Serves the router until `closing` is ready. Then accepts no more connections, and returns once every request has
/// been answered. Does not wait for WebSockets.
///
/// Data is sent at once (`TCP_NODELAY`), so that a delta does not wait for the acknowledgement of the previous one.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    closing: impl Future<Output = ()>,
) {
    serve_tls(listener, router, limits, None, closing).await;
}

/// Like [`serve`], over TLS if there is a certificate. A handshake may take as long as the head of a request.
pub async fn serve_tls(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    certificate: Option<Certificate>,
    closing: impl Future<Output = ()>,
) {
    let (head, idle, send) = (limits.head.min(FAR), limits.idle.min(FAR), limits.send.min(FAR));
    let limits = ConnectionLimits { head, idle, send, ..limits };
    let open = Arc::new(Open::new(limits));
    let (close, closed) = watch::channel(false);
    // Every connection holds a sender. All are gone once receiving fails.
    let (alive, mut gone) = mpsc::channel::<()>(1);
    let mut intake = Intake::new(listener, open);
    let mut closing = pin!(closing);
    loop {
        let (stream, seat) = tokio::select! {
            () = &mut closing => break,
            accepted = intake.next() => accepted,
        };
        let (router, closed, alive) = (router.clone(), closed.clone(), alive.clone());
        let acceptor = certificate.as_ref().map(Certificate::acceptor);
        tokio::spawn(async move {
            drive::drive(stream, seat, router, limits, acceptor, closed).await;
            drop(alive);
        });
    }
    drop((intake, alive));
    // Nobody listens if no connection is open.
    let _ = close.send(true);
    gone.recv().await;
}
