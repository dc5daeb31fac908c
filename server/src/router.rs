//! Who is let in, and where to.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::{Router, extract::Request, routing::any};
use everturn_orchestrator::Orchestrator;
use everturn_transport_http::{Access, Guard, Metrics, router_with_sockets};
use everturn_transport_ws::Sockets;

use crate::{
    capacity::Capacity,
    config::{Config, Hidden},
};

/// Everything that is served at `bound`, guarded; and its WebSockets, which outlive their requests.
pub(crate) fn open(
    orchestrator: &Orchestrator,
    config: &Config,
    capacity: &Capacity,
    metrics: Metrics,
    bound: SocketAddr,
) -> Result<(Router, Sockets)> {
    let access = Access {
        bound,
        hosts: config.allowed_hosts.clone(),
        origins: config.allowed_origins.clone(),
        token: config.token.as_ref().map(Hidden::reveal).map(str::to_owned),
        is_open: everturn_page::is_open,
    };
    let guard = Guard::new(access).context("who may use the server ([server] in the configuration)")?;
    let sockets = Sockets::new(orchestrator.clone(), capacity.sockets);
    let calls = router_with_sockets(orchestrator.clone(), capacity.calls, metrics, sockets.clone());
    let routes = calls.merge(sockets.router()).merge(everturn_page::router());
    // Clients that know no path open their socket at the root.
    let upgrades = sockets.clone();
    let root = async move |request: Request| match Sockets::are_wanted(request.headers()) {
        true => upgrades.upgrade(request).await,
        false => everturn_page::index(request.headers()),
    };
    Ok((guard.protect(routes.route("/", any(root))), sockets))
}
