//! The callers of a running server: those of the configuration, and those that others make and revoke meanwhile.

pub(crate) mod api;

use std::time::{Duration, SystemTime};

use anyhow::Result;
use everturn_orchestrator::Orchestrator;
use everturn_transport_http::{Callers, KnownCaller};
use tokio::time::sleep;

use crate::config::{CallersFile, Config};

/// Interval to look for changes of the file, and for tokens that have expired.
const TICK: Duration = Duration::from_secs(1);

/// The callers of a server, kept up to date by [`Kept::keep_up`].
pub(crate) struct Kept {
    pub(crate) callers: Callers,
    orchestrator: Orchestrator,
    configured: Vec<KnownCaller>,
    file: Option<CallersFile>,
    changed: Option<(SystemTime, u64)>,
    /// Whether a failure to read it was logged.
    is_told: bool,
}

impl Kept {
    /// Reads the callers.
    ///
    /// # Errors
    /// When their file cannot be read: then the server must not begin, because nobody would be asked for a token.
    pub(crate) fn read(config: &Config, orchestrator: &Orchestrator) -> Result<Self> {
        // Before it is read, so that no change is missed.
        let changed = config.callers_file.as_ref().and_then(CallersFile::changed_at);
        let kept = Self {
            callers: Callers::default(),
            orchestrator: orchestrator.clone(),
            configured: config.callers.clone(),
            file: config.callers_file.clone(),
            changed,
            is_told: false,
        };
        kept.replace(config.known_callers()?);
        Ok(kept)
    }

    fn replace(&self, known: Vec<KnownCaller>) {
        // Turns of one whose token is revoked go on, within the same limits.
        let terms = known.iter().map(|caller| (caller.name.clone(), caller.terms));
        self.orchestrator.limit_callers(terms.collect());
        let models = known.iter().map(|caller| (caller.name.clone(), caller.models.clone()));
        self.orchestrator.allow_models(models.collect());
        self.callers.replace(known);
    }

    /// Notices changes of the file and tokens that expire, until the task is aborted.
    pub(crate) async fn keep_up(mut self) {
        loop {
            sleep(TICK).await;
            self.callers.expire();
            let now = self.file.as_ref().and_then(CallersFile::changed_at);
            if now != self.changed && self.read_again().await {
                self.changed = now;
            }
        }
    }

    /// Returns whether it succeeded. Otherwise it is tried again, as a revoked token must not stay valid.
    async fn read_again(&mut self) -> bool {
        let Some(file) = self.file.clone() else { return true };
        let read = tokio::task::spawn_blocking(move || {
            file.read()?.iter().map(crate::config::KeptCaller::known).collect::<Result<Vec<_>>>()
        });
        match read.await {
            Ok(Ok(mut known)) => {
                known.retain(|known| !self.configured.iter().any(|caller| caller.name == known.name));
                known.extend(self.configured.iter().cloned());
                self.replace(known);
                self.is_told = false;
                return true;
            }
            Ok(Err(error)) => self.tell(&format!("{error:#}")),
            Err(error) => self.tell(&format!("the callers cannot be read: {error}")),
        }
        false
    }

    /// Logs a failure once.
    fn tell(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!("{why}: tokens stay as they were until it can be read");
        }
    }
}
