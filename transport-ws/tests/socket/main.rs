//! The WebSocket transport over real sockets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod behind;
mod branch;
mod command;
mod end;
mod limit;
mod peer;
mod pipeline;
mod place;
mod puppet;
mod question;
mod raw;
mod relay;
mod report;
mod slow;
mod stall;
mod world;

#[path = "../../../orchestrator/tests/orchestrator/storage.rs"]
#[allow(dead_code, reason = "shared with the tests of the orchestrator")]
mod storage;

use everturn_transport_ws::{SocketLimits, router};
use world::World;

async fn world() -> World {
    world_with(SocketLimits::default()).await
}

async fn world_with(limits: SocketLimits) -> World {
    World::serve(|orchestrator, _| router(orchestrator, limits)).await
}
