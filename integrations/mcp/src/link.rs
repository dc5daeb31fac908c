//! The link between tools and their server, which outlives restarts.

use std::{
    collections::BTreeSet,
    error::Error,
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::{Peer, RoleClient};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::{ServerConfig, account::Account, call::Calls, redactor::Redactor};

/// How long a call waits for a server that is starting.
const STARTING: Duration = Duration::from_secs(30);

/// Maximum length of a server's error that is repeated, in bytes.
const LONGEST: usize = 500;

/// The state of a server, shared by its tools.
pub(crate) struct Link {
    pub(crate) config: ServerConfig,
    pub(crate) redactor: Arc<Redactor>,
    /// The login, of a server over HTTP.
    pub(crate) account: Option<Arc<Account>>,
    pub(crate) condition: watch::Sender<Condition>,
}

/// The state of a server.
#[derive(Clone)]
pub(crate) enum Condition {
    Starting,
    Up(Line),
    Down {
        why: String,
        /// When it is restarted; `None` if it is starting or stopped for good.
        again: Option<Instant>,
    },
}

/// A connection for calls.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) calls: Arc<Calls>,
    /// The server's own names of the tools that it offers at present.
    pub(crate) offered: Arc<BTreeSet<String>>,
    /// Notified by a call that failed in transit. Listing the tools then shows whether the connection is broken.
    pub(crate) doubted: Arc<Notify>,
}

impl Link {
    pub(crate) fn new(config: ServerConfig, account: Option<Arc<Account>>) -> Self {
        let redactor = account.as_ref().map(|account| account.redactor.clone());
        let redactor = redactor.unwrap_or_else(|| Arc::new(Redactor::of(&config)));
        Self { config, redactor, account, condition: watch::Sender::new(Condition::Starting) }
    }

    /// Returns what to do, if the server asks for a login.
    pub(crate) fn login(&self) -> Option<String> {
        self.account.as_ref().filter(|account| account.is_demanded()).map(|account| account.advice())
    }

    /// Waits until the server is up, and takes calls with the login that it has.
    pub(crate) async fn logged_in(&self) {
        let mut watch = self.condition.subscribe();
        let is_up = |condition: &Condition| matches!(condition, Condition::Up(_)) && self.login().is_none();
        // Fails only without a sender, which this struct holds.
        let _ = watch.wait_for(is_up).await;
    }

    /// Waits until somebody has logged in or out.
    pub(crate) async fn another_login(&self) {
        match &self.account {
            Some(account) => account.changed.notified().await,
            None => pending().await,
        }
    }

    /// Takes note of a demand for a login, if the error is one.
    pub(crate) fn hears(&self, error: &(dyn Error + 'static)) -> bool {
        self.account.as_ref().is_some_and(|account| account.hears(error))
    }

    /// Formats an error of the server for people.
    pub(crate) fn short(&self, error: &impl ToString) -> String {
        let mut text = self.redactor.redact(error.to_string()).into_owned();
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push_str("...");
        }
        text
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(*self.condition.borrow(), Condition::Up(_))
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(*self.condition.borrow(), Condition::Starting)
    }

    /// Waits until the server is no longer starting.
    pub(crate) async fn settled(&self) {
        let mut watch = self.condition.subscribe();
        // Fails only without a sender, which this struct holds.
        let _ = watch.wait_for(|condition| !matches!(condition, Condition::Starting)).await;
    }

    /// Returns the connection. Waits for a server that is starting.
    ///
    /// # Errors
    /// Returns the reason, for the model, if the server is down.
    pub(crate) async fn line(&self) -> Result<Line, String> {
        // If the server takes longer, the call treats it as down.
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

/// Returns when the server is restarted, as the end of a sentence.
pub(crate) fn soon(again: Option<Instant>) -> String {
    again.map_or_else(String::new, |again| {
        let seconds = again.saturating_duration_since(Instant::now()).as_secs_f32().ceil();
        format!("; restarting in {seconds:.0} s")
    })
}
