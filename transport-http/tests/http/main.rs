//! The HTTP transport over real connections.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ag_ui;
mod ai_sdk;
mod ai_sdk_socket;
mod approval;
mod branch;
mod catch_up;
mod client;
mod connection;
mod control;
mod document;
mod export;
mod guard;
mod held;
mod history;
mod limit;
mod nodes;
mod openai;
mod refusal;
mod report;
mod request;
mod retry_settings;
mod search;
mod stream;

#[path = "../../../transport-ws/tests/socket/peer.rs"]
#[allow(dead_code, reason = "shared with the tests of the WebSocket transport")]
mod peer;
#[path = "../../../transport-ws/tests/socket/puppet.rs"]
#[allow(dead_code, reason = "shared with the tests of the WebSocket transport")]
mod puppet;
#[path = "../../../transport-ws/tests/socket/world.rs"]
#[allow(dead_code, reason = "shared with the tests of the WebSocket transport")]
mod world;

#[path = "../../../orchestrator/tests/orchestrator/storage.rs"]
#[allow(dead_code, reason = "shared with the tests of the orchestrator")]
mod storage;

use everturn_orchestrator::Orchestrator;
use everturn_transport_http::{Access, CallLimits, Callers, Guard, Metrics, router};
use world::World;

async fn world() -> World {
    world_with(CallLimits::default()).await
}

async fn world_with(limits: CallLimits) -> World {
    World::serve(|orchestrator, _| {
        let sockets = everturn_transport_ws::router(orchestrator.clone(), Default::default());
        router(orchestrator, limits, Metrics::none()).merge(sockets)
    })
    .await
}

/// Serves an app that requires the token `secret`.
async fn guarded(app: impl FnOnce(Orchestrator) -> axum::Router) -> World {
    World::serve(|orchestrator, address| {
        let access = Access {
            bound: address,
            hosts: Vec::new(),
            origins: Vec::new(),
            token: Some("secret".to_owned()),
            callers: Callers::default(),
            caller_header: None,
            is_open: |_| false,
        };
        Guard::new(access).unwrap().protect(app(orchestrator))
    })
    .await
}
