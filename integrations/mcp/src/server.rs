//! An MCP server as a tool source.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use everturn_orchestrator::{SourceState, Tool, ToolSource};
use everturn_wire::ToolSourceStatus;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    ConfigError, Login, LoginError, ServerConfig,
    account::Account,
    caller::Caller,
    catalog::Catalog,
    link::{self, Condition, Link},
    login, name, supervisor,
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
        let account = login::account(&config)?;
        let caller = account.clone().map(Caller::new).transpose()?;
        let (link, catalog) = (Arc::new(Link::new(config, account)), Arc::new(Catalog::new()));
        let stop = CancellationToken::new();
        let supervisor =
            tokio::spawn(supervisor::supervise(link.clone(), caller, catalog.clone(), stop.clone()));
        Ok(Self { link, catalog, stop, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// Begins a login. `redirect`: where the browser ends, which is passed to [`Login::finish`].
    ///
    /// # Errors
    /// See [`LoginError`].
    pub async fn begin_login(&self, redirect: &str) -> Result<Login, LoginError> {
        Login::at(self.account()?.clone(), redirect).await
    }

    /// Forgets the login, and connects without. Returns whether there was one.
    ///
    /// # Errors
    /// See [`LoginError`].
    pub fn log_out(&self) -> Result<bool, LoginError> {
        login::forget(self.account()?)
    }

    /// Connects again if another process has logged in or out.
    pub fn look_again(&self) {
        if let Some(account) = self.link.account.as_ref().filter(|account| account.is_changed()) {
            account.changed.notify_one();
        }
    }

    fn account(&self) -> Result<&Arc<Account>, LoginError> {
        self.link.account.as_ref().ok_or_else(|| LoginError::NotHttp(self.link.name().to_owned()))
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
        let login = self.link.account.as_ref().and_then(|account| account.status());
        let message = Some(parts.join("; ")).filter(|message| !message.is_empty());
        SourceState { status, message, login }
    }

    fn may_offer(&self, tool: &str) -> bool {
        name::is_of(self.link.name(), tool)
    }

    async fn settled(&self) {
        self.link.settled().await;
    }
}
