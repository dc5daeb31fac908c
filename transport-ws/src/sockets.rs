//! Accepts sockets from upgraded requests, up to a limit.

use std::sync::Arc;

use axum::{
    Router,
    extract::{FromRequest as _, Request, State, WebSocketUpgrade},
    http::{
        HeaderMap, StatusCode,
        header::{CONTENT_TYPE, UPGRADE},
    },
    response::{IntoResponse, Response},
    routing::any,
};
use everturn_orchestrator::{Caller, Orchestrator, Scope, View};
use everturn_wire::ErrorBody;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    SocketLimits,
    native::Native,
    protocol::Protocol,
    socket::{DROPPED, Socket},
};

/// The subprotocol selected for a client that offers it.
pub const SUBPROTOCOL: &str = "everturn";

/// Size of a socket's write buffer, in bytes. Small, because every socket has one.
const BUFFER: usize = 16 << 10;
/// Size of a socket's read buffer, in bytes. It fits most commands. It is small because the whole buffer is cleared
/// with each send, which also checks for incoming data.
const READ: usize = 2 << 10;
/// Maximum number of bytes pending in a socket: room for one event of any sensible size. Only one is added while the
/// socket accepts no more.
const MAX_WAITING: usize = 32 << 20;

const OPEN: &str = "everturn_websockets";
const REFUSED: &str = "everturn_websockets_refused_total";

/// Serves `GET /ws`.
pub fn router(orchestrator: Orchestrator, limits: SocketLimits) -> Router {
    Sockets::new(orchestrator, limits).router()
}

/// All sockets of a server. Cheap to clone; clones share the limit.
#[derive(Clone)]
pub struct Sockets {
    orchestrator: Orchestrator,
    limits: SocketLimits,
    places: Arc<Semaphore>,
    /// Maximum number of sockets.
    most: u32,
}

/// A socket's permit.
struct Permit(#[expect(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

impl Sockets {
    /// Creates the collection without sockets.
    pub fn new(orchestrator: Orchestrator, limits: SocketLimits) -> Self {
        describe_gauge!(OPEN, "Open WebSockets");
        // Published from the start, because dashboards treat a missing metric as an error.
        gauge!(OPEN).increment(0.0);
        describe_counter!(REFUSED, "WebSockets refused as there were too many");
        describe_counter!(DROPPED, "WebSockets ended as the peer was slow or dead, by reason");
        let most = u32::try_from(limits.sockets.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let limits = limits.reachable();
        Self { orchestrator, limits, places: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// Serves `GET /ws`.
    pub fn router(&self) -> Router {
        let upgrade = async |State(sockets): State<Self>, request| sockets.upgrade(request).await;
        Router::new().route("/ws", any(upgrade)).with_state(self.clone())
    }

    /// Waits until every socket has ended, and accepts no further ones. For shutdown.
    pub async fn ended(&self) {
        // Cannot fail, because the semaphore is never closed.
        let _ = self.places.acquire_many(self.most).await;
    }

    /// Whether a request asks for a WebSocket upgrade, for a path that also serves other requests.
    pub fn are_wanted(headers: &HeaderMap) -> bool {
        headers.get(UPGRADE).is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"))
    }

    /// Upgrades the request to a socket, or returns why that is not possible. The socket sees what the request's [`Caller`]
    /// does; without one, it is the administrator's.
    pub async fn upgrade(&self, request: Request) -> Response {
        let caller = request.extensions().get().cloned().unwrap_or_else(Caller::administrator);
        if !caller.may(Scope::Chat) {
            return refuse(StatusCode::FORBIDDEN, "this token is not for conversations".to_owned());
        }
        let view = self.orchestrator.seen_by(&caller);
        self.upgrade_to(request, view.clone(), Native { orchestrator: view }).await
    }

    /// Upgrades the request to a socket with another protocol, or returns the reason for a rejection. It counts towards the
    /// same limits. It ends with the view's caller.
    pub async fn upgrade_to<P: Protocol>(&self, request: Request, view: View, protocol: P) -> Response {
        let upgrade = match WebSocketUpgrade::from_request(request, &()).await {
            Ok(upgrade) => upgrade,
            Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
        };
        let Ok(permit) = self.places.clone().try_acquire_owned() else {
            counter!(REFUSED).increment(1);
            let most = self.limits.sockets;
            let why = format!("the limit of {most} WebSockets is reached: try again later");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        let place = Permit::new(permit);
        let limits = self.limits;
        upgrade
            .protocols([SUBPROTOCOL])
            .read_buffer_size(READ)
            .write_buffer_size(BUFFER)
            .max_write_buffer_size(MAX_WAITING)
            .max_message_size(limits.command)
            .max_frame_size(limits.command)
            .on_upgrade(async move |socket| {
                Socket::new(socket, view, protocol, limits).run().await;
                drop(place);
            })
    }
}

impl Permit {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        gauge!(OPEN).increment(1.0);
        Self(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        gauge!(OPEN).decrement(1.0);
    }
}

fn refuse(status: StatusCode, error: String) -> Response {
    // Wire types have string keys and finite numbers, so serializing cannot fail.
    let body = serde_json::to_string(&ErrorBody { error }).unwrap_or_default();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
