//! What the handlers of all routes share, and what a request can reach.

use std::{convert::Infallible, ops::Deref, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request},
    http::{StatusCode, request::Parts},
};
use everturn_orchestrator::{Caller, Orchestrator, View};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{CallLimits, Metrics, limits::FAR, refusal::Refusal};

/// The state of all routes. What it serves is only reached through the view of a request's caller ([`Api`]).
#[derive(Clone)]
pub(crate) struct Doors {
    orchestrator: Orchestrator,
    pub(crate) room: Room,
}

/// What a request can reach: what its caller sees.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) orchestrator: View,
    room: Room,
}

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) limits: CallLimits,
    pub(crate) metrics: Metrics,
    streams: Arc<Semaphore>,
    /// Total size of incomplete request bodies that is still available, in bytes.
    bodies: Arc<Semaphore>,
}

/// Returns who a request is by: the administrator, if nobody checked it.
pub(crate) fn caller(request: &Request) -> Caller {
    request.extensions().get().cloned().unwrap_or_else(Caller::administrator)
}

impl Doors {
    pub(crate) fn new(orchestrator: Orchestrator, limits: CallLimits, metrics: Metrics) -> Self {
        Self { orchestrator, room: Room::new(limits, metrics) }
    }
}

impl FromRequestParts<Doors> for Api {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Infallible> {
        let caller = parts.extensions.get().cloned().unwrap_or_else(Caller::administrator);
        Ok(Self { orchestrator: doors.orchestrator.seen_by(&caller), room: doors.room.clone() })
    }
}

impl Deref for Api {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

impl Room {
    fn new(limits: CallLimits, metrics: Metrics) -> Self {
        let streams = Arc::new(Semaphore::new(limits.streams.min(Semaphore::MAX_PERMITS)));
        let bodies = Arc::new(Semaphore::new(limits.bodies.min(Semaphore::MAX_PERMITS)));
        let (body_pause, body_time) = (limits.body_pause.min(FAR), limits.body_time.min(FAR));
        let limits = CallLimits { body_pause, body_time, ..limits };
        Self { limits, metrics, streams, bodies }
    }

    /// Reserves one of the allowed streams; held as long as the stream.
    pub(crate) fn stream_place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            let most = self.limits.streams;
            let why = format!("the server has reached its limit of {most} event streams: try again later");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    /// Reserves space for a request body; held until the body is read.
    pub(crate) fn body_room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.bodies.clone().try_acquire_many_owned(bytes).map_err(|_| {
            let why = "too many large request bodies are arriving at once: try again later";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }
}
