//! The routes of the server, behind access control.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::{Router, extract::Request, routing::any};
use everturn_orchestrator::Orchestrator;
use everturn_transport_http::{Access, Callers, Guard, Metrics, router_with_sockets};
use everturn_transport_ws::Sockets;

use crate::{
    audit::Audit,
    callers,
    capacity::Capacity,
    config::{Config, Hidden},
    mcp::{self, McpServers},
    providers::{self, Providers},
};

/// What is a running server's own, beside its configuration.
pub(crate) struct Place {
    pub(crate) metrics: Metrics,
    pub(crate) callers: Callers,
    /// Where it listens.
    pub(crate) bound: SocketAddr,
}

/// Returns everything served with access control, and the WebSockets, which outlive their requests.
pub(crate) fn open(
    orchestrator: &Orchestrator,
    config: &Config,
    providers: &Providers,
    servers: &McpServers,
    capacity: &Capacity,
    Place { metrics, callers, bound }: Place,
) -> Result<(Router, Sockets)> {
    let access = Access {
        bound,
        hosts: config.allowed_hosts.clone(),
        origins: config.allowed_origins.clone(),
        token: config.token.as_ref().map(Hidden::reveal).map(str::to_owned),
        callers,
        caller_header: config.caller_header.clone(),
        is_open: |path| crate::page::is_open(path) || mcp::is_open(path),
    };
    let guard = Guard::new(access).context("invalid access rules ([server] in the configuration)")?;
    let sockets = Sockets::new(orchestrator.clone(), capacity.sockets);
    let calls = router_with_sockets(orchestrator.clone(), capacity.calls, metrics, sockets.clone());
    let (logins, ends_of_logins) =
        mcp::routes(servers, if config.tls.is_some() { "https" } else { "http" }, bound);
    let audit = Audit::new(config.audit_file.clone());
    let administration = providers::router(providers.clone())
        .merge(logins)
        .merge(audit.router())
        .merge(callers::api::router(config));
    let administration = guard.owners(administration);
    let routes = calls
        .merge(sockets.router())
        .merge(crate::page::router())
        .merge(administration)
        .merge(ends_of_logins);
    // Some clients do not know the path, and open their socket at the root.
    let upgrades = sockets.clone();
    let root = async move |request: Request| match Sockets::are_wanted(request.headers()) {
        true => upgrades.upgrade(request).await,
        false => crate::page::index(request.headers()),
    };
    Ok((audit.follow(guard.protect(routes.route("/", any(root)))), sockets))
}
