//! Where sockets come from: upgraded requests, so many at once.

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
use everturn_orchestrator::Orchestrator;
use everturn_wire::ErrorBody;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{SocketLimits, native::Native, protocol::Protocol, socket::Socket};

/// The subprotocol that is answered to a client that offers it.
pub const SUBPROTOCOL: &str = "everturn";

/// What a socket gathers before it writes, in bytes. Small: every socket has it.
const BUFFER: usize = 16 << 10;
/// What a socket reads at once, in bytes. As little as most commands take: all of it is cleared each time that something
/// is sent, as it is looked then whether there is something to read.
const READ: usize = 2 << 10;
/// The most that may wait in a socket, in bytes: room for one event of any sensible size. Only one is ever added while
/// the socket does not take more.
const MAX_WAITING: usize = 32 << 20;

const OPEN: &str = "everturn_websockets";
const REFUSED: &str = "everturn_websockets_refused_total";
pub(crate) const DROPPED: &str = "everturn_websockets_dropped_total";

/// Serves `GET /ws`.
pub fn router(orchestrator: Orchestrator, limits: SocketLimits) -> Router {
    Sockets::new(orchestrator, limits).router()
}

/// All sockets of a server. Cheap to clone; all clones count together.
#[derive(Clone)]
pub struct Sockets {
    orchestrator: Orchestrator,
    limits: SocketLimits,
    places: Arc<Semaphore>,
    /// How many places there are.
    most: u32,
}

/// One socket's place among those allowed.
struct Permit(#[expect(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

impl Sockets {
    /// None yet.
    pub fn new(orchestrator: Orchestrator, limits: SocketLimits) -> Self {
        describe_gauge!(OPEN, "Open WebSockets");
        // Shown from the start: a dashboard would take a figure that is missing for a mistake.
        gauge!(OPEN).increment(0.0);
        describe_counter!(REFUSED, "WebSockets refused as there were too many");
        describe_counter!(DROPPED, "WebSockets ended as the peer was slow or dead, by reason");
        let most = u32::try_from(limits.sockets.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self { orchestrator, limits, places: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// Serves `GET /ws`.
    pub fn router(&self) -> Router {
        let upgrade = async |State(sockets): State<Self>, request| sockets.upgrade(request).await;
        Router::new().route("/ws", any(upgrade)).with_state(self.clone())
    }

    /// Waits until every socket has ended, and lets no further one in: for a server that is about to end.
    pub async fn ended(&self) {
        // Cannot fail: it is never closed.
        let _ = self.places.acquire_many(self.most).await;
    }

    /// Whether a request wants to be a WebSocket: for a path that is something else otherwise.
    pub fn are_wanted(headers: &HeaderMap) -> bool {
        headers.get(UPGRADE).is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"))
    }

    /// Makes the request a socket for commands and events, or says why that cannot be.
    pub async fn upgrade(&self, request: Request) -> Response {
        self.upgrade_to(request, Native::new(self.orchestrator.clone())).await
    }

    /// Makes the request a socket over which another protocol is spoken, or says why that cannot be. It counts like any other.
    pub async fn upgrade_to<P: Protocol>(&self, request: Request, protocol: P) -> Response {
        let upgrade = match WebSocketUpgrade::from_request(request, &()).await {
            Ok(upgrade) => upgrade,
            Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
        };
        let Ok(permit) = self.places.clone().try_acquire_owned() else {
            counter!(REFUSED).increment(1);
            let most = self.limits.sockets;
            let why = format!("the server has its {most} WebSockets already: try again later");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        let place = Permit::new(permit);
        let (orchestrator, limits) = (self.orchestrator.clone(), self.limits);
        upgrade
            .protocols([SUBPROTOCOL])
            .read_buffer_size(READ)
            .write_buffer_size(BUFFER)
            .max_write_buffer_size(MAX_WAITING)
            .max_message_size(limits.command)
            .max_frame_size(limits.command)
            .on_upgrade(async move |socket| {
                Socket::new(socket, orchestrator, protocol, limits).run().await;
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
    // A wire type has string keys and finite numbers: it always has its JSON.
    let body = serde_json::to_string(&ErrorBody { error }).unwrap_or_default();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
