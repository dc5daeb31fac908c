//! The callers of a running server: those of the configuration, and those that others make and revoke meanwhile.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use everturn_transport_http::{Callers, KnownCaller};
use tokio::time::sleep;

use crate::config::{CallersFile, Config};

/// Interval to look for changes of the file, and for tokens that have expired.
const TICK: Duration = Duration::from_secs(1);

/// The callers of a server, kept up to date by [`Kept::keep_up`].
pub(crate) struct Kept {
    pub(crate) callers: Callers,
    configured: Vec<KnownCaller>,
    file: Option<CallersFile>,
    changed: Option<(SystemTime, u64)>,
}

impl Kept {
    /// Reads the callers.
    ///
    /// # Errors
    /// When their file cannot be read: then the server must not begin, because nobody would be asked for a token.
    pub(crate) fn read(config: &Config) -> Result<Self> {
        let callers = Callers::default();
        // Before it is read, so that no change is missed.
        let changed = config.callers_file.as_ref().and_then(CallersFile::changed_at);
        callers.replace(config.known_callers()?);
        Ok(Self { callers, configured: config.callers.clone(), file: config.callers_file.clone(), changed })
    }

    /// Notices changes of the file and tokens that expire, until the task is aborted.
    pub(crate) async fn keep_up(mut self) {
        loop {
            sleep(TICK).await;
            self.callers.expire();
            let now = self.file.as_ref().and_then(CallersFile::changed_at);
            if now != self.changed {
                self.changed = now;
                self.read_again().await;
            }
        }
    }

    async fn read_again(&self) {
        let Some(file) = self.file.clone() else { return };
        let read = tokio::task::spawn_blocking(move || {
            file.read()?.iter().map(crate::config::KeptCaller::known).collect::<Result<Vec<_>>>()
        });
        match read.await {
            Ok(Ok(mut known)) => {
                known.retain(|known| !self.configured.iter().any(|caller| caller.name == known.name));
                known.extend(self.configured.iter().cloned());
                self.callers.replace(known);
            }
            Ok(Err(error)) => tracing::warn!("{error:#}: tokens stay as they were"),
            Err(error) => tracing::warn!(%error, "the callers cannot be read: tokens stay as they were"),
        }
    }
}
