//! Accepting connections, and what one may cost.

mod activity;
mod drive;
mod intake;
mod open;
mod watched;

use std::{pin::pin, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

use intake::Intake;
use open::Open;

/// What connections may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once. One more takes the place of the one that has been idle for longest; it is closed where none
    /// is idle.
    pub connections: usize,
    /// How long a new connection may take to begin a request, and how long the head of a request may take.
    pub head: Duration,
    /// How long a connection may be kept open between two requests.
    pub idle: Duration,
    /// How long a client may take nothing of an answer that is being sent to it.
    pub send: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            head: Duration::from_secs(15),
            // Longer than most proxies keep their connections, so that theirs is the end that closes.
            idle: Duration::from_secs(75),
            send: Duration::from_secs(30),
        }
    }
}

/// Serves the router to whoever connects, until `closing` is ready. Then no connection is accepted any more, and this
/// returns when every request has been answered. WebSockets are not waited for.
///
/// What is sent goes out at once (`TCP_NODELAY`): a delta does not wait for the acknowledgement of the one before it.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    closing: impl Future<Output = ()>,
) {
    let open = Arc::new(Open::new(limits));
    let (close, closed) = watch::channel(false);
    // Every connection holds a sender: all are gone when nothing can be received any more.
    let (alive, mut gone) = mpsc::channel::<()>(1);
    let mut intake = Intake::new(listener, open);
    let mut closing = pin!(closing);
    loop {
        let (stream, seat) = tokio::select! {
            () = &mut closing => break,
            accepted = intake.next() => accepted,
        };
        let (router, closed, alive) = (router.clone(), closed.clone(), alive.clone());
        tokio::spawn(async move {
            drive::drive(stream, seat, router, limits, closed).await;
            drop(alive);
        });
    }
    drop((intake, alive));
    // Nobody listens where nothing is open.
    let _ = close.send(true);
    gone.recv().await;
}
