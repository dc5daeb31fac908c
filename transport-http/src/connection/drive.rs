//! Serves one connection, within its limits.

use std::{convert::Infallible, future::pending};

use axum::{Router, body::Body, extract::Request};
use hyper::{
    StatusCode,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use metrics::counter;
use tokio::{
    net::TcpStream,
    pin,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    ConnectionLimits, Peer,
    activity::Phase,
    open::{CLOSED, Slot},
    tls::Stream,
    watched::{RequestBody, ResponseBody, Socket},
};

/// Serves one connection until its client leaves, a limit is reached, or the server shuts down and the request is
/// answered.
pub(super) async fn drive(
    stream: TcpStream,
    slot: Slot,
    router: Router,
    limits: ConnectionLimits,
    acceptor: Option<TlsAcceptor>,
    mut closed: watch::Receiver<bool>,
) {
    let activity = slot.activity.clone();
    let peer = stream.peer_addr().ok().map(Peer);
    let stream = match acceptor {
        None => Stream::Plain(stream),
        Some(acceptor) => {
            let handshake = tokio::select! {
                biased;
                () = activity.evicted() => Err("room"),
                _ = closed.wait_for(|closed| *closed) => return,
                shaken = timeout(limits.head, acceptor.accept(stream)) => shaken.map_err(|_| "head"),
            };
            match handshake {
                Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    return;
                }
                Err(closed_for) => {
                    counter!(CLOSED, "reason" => closed_for).increment(1);
                    return;
                }
            }
        }
    };
    let router = TowerToHyperService::new(router);
    let serving = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let activity = serving.clone();
        let (mut head, body) = request.into_parts();
        if let Some(peer) = peer {
            head.extensions.insert(peer);
        }
        let answer =
            RequestBody::body(body, &activity).map(|body| router.call(Request::from_parts(head, body)));
        async move {
            // An evicted connection never begins a request, which would be cut off.
            let Some(answer) = answer else { return pending().await };
            let answer = answer.await?;
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                activity.enter(Phase::Upgraded);
            }
            Ok::<_, Infallible>(answer.map(|body: Body| ResponseBody::new(body, activity)))
        }
    });
    let socket = TokioIo::new(Socket::new(stream, slot));
    let connection = http1::Builder::new().serve_connection(socket, service).with_upgrades();
    pin!(connection);
    // The deadline of the next phase is no sooner than this.
    let soonest = limits.head.min(limits.idle).min(limits.send);
    let mut is_closing = false;
    loop {
        let look = Instant::now() + soonest;
        let deadline = activity.deadline(&limits);
        let closed_for = tokio::select! {
            biased;
            // Before the connection, which could accept another request.
            () = activity.evicted() => "room",
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
                return;
            }
            () = sleep_until(deadline.map_or(look, |(deadline, _)| deadline.min(look))) => {
                match activity.deadline(&limits) {
                    Some((deadline, why)) if deadline <= Instant::now() => why,
                    _ => continue,
                }
            }
            _ = closed.wait_for(|closed| *closed), if !is_closing => {
                if activity.is_silent() {
                    return;
                }
                is_closing = true;
                connection.as_mut().graceful_shutdown();
                continue;
            }
        };
        counter!(CLOSED, "reason" => closed_for).increment(1);
        return;
    }
}

#[cfg(test)]
mod tests;
