//! Says that this build has no MCP servers.

use std::{net::SocketAddr, process::ExitCode};

use anyhow::{Result, bail};
use axum::Router;
use everturn_mcp::ServerConfig;
use everturn_orchestrator::Builder;

use crate::{
    absent::absent,
    cli::Mcp,
    config::{Environment, LoginFile},
};

/// No servers.
#[derive(Clone)]
pub(crate) struct McpServers;

impl McpServers {
    pub(crate) fn start(configs: &[ServerConfig]) -> Result<Self> {
        if !configs.is_empty() {
            bail!(absent("MCP", "mcp"));
        }
        Ok(Self)
    }

    pub(crate) fn offer(&self, builder: Builder) -> Builder {
        builder
    }

    pub(crate) async fn keep_up(self, _: Option<LoginFile>) {}

    pub(crate) async fn settled(&self) {}

    pub(crate) async fn close(&self) {}
}

pub(crate) fn routes(_: &McpServers, _: &str, _: SocketAddr) -> (Router, Router) {
    (Router::new(), Router::new())
}

pub(crate) fn is_open(_: &str) -> bool {
    false
}

pub(crate) async fn run(_: Mcp, _: &Environment<'_>) -> Result<ExitCode> {
    bail!(absent("MCP", "mcp"))
}
