//! The MCP servers of a process.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use everturn_mcp::{McpServer, ServerConfig};
use everturn_orchestrator::{Builder, ToolSource};
use futures_util::future::join_all;
use tokio::time::timeout;

/// How long startup waits for the servers, so that the first turn has their tools. Slower servers are added later.
const STARTING: Duration = Duration::from_secs(5);

/// How long the servers may take to end.
const ENDING: Duration = Duration::from_secs(3);

/// The MCP servers of a process, which end with it.
#[derive(Default)]
pub(crate) struct McpServers(Vec<Arc<McpServer>>);

impl McpServers {
    /// Starts them in the background.
    pub(crate) fn start(configs: &[ServerConfig]) -> Result<Self> {
        let start = |config: &ServerConfig| {
            let server = McpServer::start(config.clone());
            server.map(Arc::new).with_context(|| format!("MCP server {:?}", config.name))
        };
        configs.iter().map(start).collect::<Result<_>>().map(Self)
    }

    /// Adds their tools to the orchestrator.
    pub(crate) fn offer(&self, builder: Builder) -> Builder {
        self.0.iter().fold(builder, |builder, server| builder.tool_source(server.clone()))
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
