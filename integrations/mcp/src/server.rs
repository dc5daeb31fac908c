//! An MCP server as a tool source.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use everturn_orchestrator::{SourceState, Tool, ToolSource};
use everturn_wire::ToolSourceStatus;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    ConfigError, Connection, ServerConfig,
    catalog::Catalog,
    http::Caller,
    link::{self, Condition, Link},
    name, supervisor,
};

/// An MCP server that is kept running. Its process is killed on drop.
pub struct McpServer {
    link: Arc<Link>,
    catalog: Arc<Catalog>,
    stop: CancellationToken,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl McpServer {
    /// Starts the server in the background, on the current tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid.
    pub fn start(config: ServerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let caller = match &config.connection {
            Connection::Http(endpoint) => Some(Caller::new(endpoint)?),
            Connection::Command(_) => None,
        };
        let (link, catalog) = (Arc::new(Link::new(config)), Arc::new(Catalog::new()));
        let stop = CancellationToken::new();
        let supervisor =
            tokio::spawn(supervisor::supervise(link.clone(), caller, catalog.clone(), stop.clone()));
        Ok(Self { link, catalog, stop, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// Stops the server for good. Its process is asked to end, and killed if it does not. Takes up to three seconds.
    pub async fn close(&self) {
        self.stop.cancel();
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(supervisor) = supervisor {
            // If the task panicked, it has dropped its process.
            let _ = supervisor.await;
        }
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.get_mut().unwrap_or_else(PoisonError::into_inner) {
            supervisor.abort();
        }
    }
}

#[async_trait]
impl ToolSource for McpServer {
    fn name(&self) -> &str {
        self.link.name()
    }

    fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
        self.catalog.tools()
    }

    fn state(&self) -> SourceState {
        let (status, down) = match &*self.link.condition.borrow() {
            Condition::Starting => (ToolSourceStatus::Starting, None),
            Condition::Up(_) => (ToolSourceStatus::Up, None),
            Condition::Down { why, again } => {
                (ToolSourceStatus::Down, Some(format!("{why}{}", link::soon(*again))))
            }
        };
        let parts: Vec<String> = [down, self.catalog.refused()].into_iter().flatten().collect();
        SourceState { status, message: Some(parts.join("; ")).filter(|message| !message.is_empty()) }
    }

    fn may_offer(&self, tool: &str) -> bool {
        name::is_of(self.link.name(), tool)
    }

    async fn settled(&self) {
        self.link.settled().await;
    }
}
