//! A server inside this process, for one client.

use std::{
    future::pending,
    net::{Ipv4Addr, SocketAddr},
};

use anyhow::{Context as _, Result};
use everturn_orchestrator::{Clock as _, Orchestrator, SystemClock};
use everturn_terminal::{Resume, source_state};
use everturn_transport_http::{Callers, Metrics, serve};
use everturn_wire::{ConversationId, ToolSourceStatus};
use futures_util::future::join;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::{
    assembly,
    capacity::Capacity,
    config::{Config, Hidden},
    mcp::McpServers,
    policy,
    providers::Providers,
    retention,
    router::{self, Place},
    serve::{GRACE, bind, save},
    storage::Storage,
};

/// A server on a free port.
pub(crate) struct Private {
    pub(crate) url: String,
    pub(crate) port: u16,
    pub(crate) default_model: String,
    /// A line about each MCP server whose tools cannot be called.
    pub(crate) off: Vec<String>,
    /// A line about each tool policy without a tool.
    pub(crate) warnings: Vec<String>,
    orchestrator: Orchestrator,
    servers: McpServers,
    pruning: Option<JoinHandle<()>>,
    offering: JoinHandle<()>,
}

impl Private {
    /// Starts it. In memory, conversations end with the process. It resumes no turn by itself: those of the storage
    /// are other people's, or of another time. Without a token, it answers every program of this machine.
    pub(crate) async fn start(config: Config, storage: Storage, token: Option<Hidden>) -> Result<Self> {
        let mut config = Config { token, ..config };
        let providers = Providers::new(&mut config)?;
        let servers = McpServers::start(&config.mcp)?;
        let orchestrator = assembly::orchestrator(&config, &providers, storage.clone(), &servers, None);
        let listener = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).await?;
        let address = listener.local_addr()?;
        let capacity = Capacity::of_process();
        let place = Place { metrics: Metrics::none(), callers: Callers::default(), bound: address };
        let (app, _) = router::open(&orchestrator, &config, &providers, &servers, &capacity, place)?;
        tokio::spawn(serve(listener, app, capacity.connections, pending()));
        let mut pruning = None;
        if let Some(journal) = storage.journal() {
            orchestrator.restore().await.context("cannot read what was kept")?;
            let (kept, clock) = (orchestrator.clone(), SystemClock::default());
            let pruned = retention::run(kept, journal, config.keep, move || clock.now());
            pruning = Some(tokio::spawn(pruned));
        }
        let (offering, ()) = join(providers.start(&orchestrator, storage.state()), servers.settled()).await;
        let sources = orchestrator.tools().sources;
        let off = sources.iter().filter(|source| source.status != ToolSourceStatus::Up);
        let off =
            off.map(|source| format!("MCP server {:?}: {}", source.name, source_state(source))).collect();
        let default_model = orchestrator.models().into_iter().next().unwrap_or_default();
        let (url, port) = (format!("http://{address}"), address.port());
        let warnings = policy::warnings(&orchestrator);
        Ok(Self { url, port, default_model, off, warnings, orchestrator, servers, pruning, offering })
    }

    /// Returns a new token.
    pub(crate) fn token() -> Result<Hidden> {
        Hidden::new(&Uuid::new_v4().to_string()).context("a token")
    }

    /// Has a turn of an earlier process go on.
    pub(crate) fn resuming(&self) -> Resume {
        let orchestrator = self.orchestrator.clone();
        Box::new(move |id: ConversationId| {
            let orchestrator = orchestrator.clone();
            Box::pin(async move {
                orchestrator.resume_one(&id).await.context("cannot resume the turn")?;
                Ok(())
            })
        })
    }

    /// Saves what runs, so that it can go on another time.
    pub(crate) async fn close(self) {
        save(&self.orchestrator, GRACE).await;
        if let Some(pruning) = self.pruning {
            pruning.abort();
        }
        self.offering.abort();
        self.servers.close().await;
    }
}
