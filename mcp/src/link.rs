//! What connects a tool to its server, however often that is restarted.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::{Peer, RoleClient};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::{ServerConfig, call::Calls, veil::Veil};

/// How long a call waits for a server that is starting.
const STARTING: Duration = Duration::from_secs(30);

/// How a server is, for its tools and for those who ask.
pub(crate) struct Link {
    pub(crate) config: ServerConfig,
    pub(crate) veil: Veil,
    pub(crate) condition: watch::Sender<Condition>,
}

/// How a server is.
#[derive(Clone)]
pub(crate) enum Condition {
    Starting,
    Up(Line),
    Down {
        why: String,
        /// When it is started again. `None` = it is being started, or never will be.
        again: Option<Instant>,
    },
}

/// A connection that calls can be made on.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) calls: Arc<Calls>,
    /// The server's own names of the tools that it offers now.
    pub(crate) offered: Arc<BTreeSet<String>>,
    /// Told by a call that did not get through: the list is asked for, which shows whether the connection is broken.
    pub(crate) doubted: Arc<Notify>,
}

impl Link {
    pub(crate) fn new(config: ServerConfig) -> Self {
        let veil = Veil::of(&config);
        Self { config, veil, condition: watch::Sender::new(Condition::Starting) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(*self.condition.borrow(), Condition::Starting)
    }

    /// Waits until it is no longer starting.
    pub(crate) async fn settled(&self) {
        let mut watch = self.condition.subscribe();
        // It fails only without a sender, which is here.
        let _ = watch.wait_for(|condition| !matches!(condition, Condition::Starting)).await;
    }

    /// The connection; of a server that is starting, soon.
    ///
    /// # Errors
    /// When it is down, as the model is told.
    pub(crate) async fn line(&self) -> Result<Line, String> {
        // One that takes longer counts as down for this call.
        let _ = timeout(STARTING, self.settled()).await;
        let name = self.name();
        match &*self.condition.borrow() {
            Condition::Up(line) => Ok(line.clone()),
            Condition::Starting => Err(format!("the MCP server {name} is still starting: try again later")),
            Condition::Down { why, again } => {
                Err(format!("the MCP server {name} is down: {why}{}", soon(*again)))
            }
        }
    }
}

/// When it is started again, as the end of a sentence.
pub(crate) fn soon(again: Option<Instant>) -> String {
    again.map_or_else(String::new, |again| {
        let seconds = again.saturating_duration_since(Instant::now()).as_secs_f32().ceil();
        format!("; it is started again in {seconds:.0} s")
    })
}
