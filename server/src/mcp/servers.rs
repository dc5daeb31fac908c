//! The MCP servers of a process.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use everturn_mcp::{Connection, McpServer, ServerConfig};
use everturn_orchestrator::{Builder, ToolSource};
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use crate::{config::LoginFile, watch::watchdog};

/// How long startup waits for the servers, so that the first turn has their tools. Slower servers are added later.
const STARTING: Duration = Duration::from_secs(5);

/// Interval to look for logins by other processes.
const TICK: Duration = Duration::from_secs(1);

/// How long the servers may take to end.
const ENDING: Duration = Duration::from_secs(3);

/// The MCP servers of a process, which end with it.
#[derive(Clone, Default)]
pub(crate) struct McpServers(Arc<[Arc<McpServer>]>);

impl McpServers {
    /// Starts them in the background.
    pub(crate) fn start(configs: &[ServerConfig]) -> Result<Self> {
        let is_program = |config: &ServerConfig| matches!(config.connection, Connection::Command(_));
        let watchdog = if configs.iter().any(is_program) { watchdog() } else { None };
        let start = |config: &ServerConfig| {
            let server = McpServer::start(ServerConfig { watchdog: watchdog.clone(), ..config.clone() });
            server.map(Arc::new).with_context(|| format!("MCP server {:?}", config.name))
        };
        configs.iter().map(start).collect::<Result<_>>().map(Self)
    }

    /// Adds their tools to the orchestrator.
    pub(crate) fn offer(&self, builder: Builder) -> Builder {
        self.0.iter().fold(builder, |builder, server| builder.tool_source(server.clone()))
    }

    /// Returns the one with this name.
    pub(super) fn named(&self, name: &str) -> Option<&Arc<McpServer>> {
        self.0.iter().find(|server| server.name() == name)
    }

    /// Connects again where another process has logged in or out, until the task is aborted.
    pub(crate) async fn keep_up(self, file: Option<LoginFile>) {
        let Some(file) = file else { return };
        let mut known = file.changed_at();
        loop {
            sleep(TICK).await;
            let now = file.changed_at();
            if now != known {
                known = now;
                self.0.iter().for_each(|server| server.look_again());
            }
        }
    }

    /// Waits briefly until each has started or failed.
    pub(crate) async fn settled(&self) {
        let _ = timeout(STARTING, join_all(self.0.iter().map(|server| server.settled()))).await;
    }

    /// Stops them.
    pub(crate) async fn close(&self) {
        let _ = timeout(ENDING, join_all(self.0.iter().map(|server| server.close()))).await;
    }
}
