//! Exports traces if the environment configures it.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use everturn_provider::{HttpClient, HttpConfig};
use everturn_telemetry::{Settings, Traces};

/// How long exporting the last spans may take at shutdown.
const FLUSH: Duration = Duration::from_secs(2);

/// Traces being exported to a collector.
pub(crate) struct Exporting {
    pub(crate) settings: Settings,
    pub(crate) traces: Arc<Traces>,
}

impl Exporting {
    /// Reads the environment. Returns `None` if it names no collector.
    pub(crate) fn start() -> Result<Option<Self>> {
        let Some(settings) = Settings::from_environment()? else { return Ok(None) };
        let client =
            HttpClient::new(HttpConfig::default()).context("cannot create the HTTP client for traces")?;
        let traces =
            Arc::new(settings.traces(client.reqwest().context("cannot create the HTTP client for traces")?)?);
        Ok(Some(Self { settings, traces }))
    }

    /// Exports pending spans.
    pub(crate) async fn finish(self) {
        // It blocks, and the requests run on this runtime.
        let _ = tokio::task::spawn_blocking(move || self.traces.shutdown(FLUSH)).await;
    }
}
