//! Exporting traces, where the environment says where to.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use everturn_provider::{HttpClient, HttpConfig};
use everturn_telemetry::{Settings, Traces};

/// How long the last spans may take to be exported when the server ends.
const FLUSH: Duration = Duration::from_secs(2);

/// Traces on their way to a collector.
pub(crate) struct Exporting {
    pub(crate) settings: Settings,
    pub(crate) traces: Arc<Traces>,
}

impl Exporting {
    /// Reads the environment; `None` where it names no collector.
    pub(crate) fn start() -> Result<Option<Self>> {
        let Some(settings) = Settings::from_environment()? else { return Ok(None) };
        let client = HttpClient::new(HttpConfig::default()).context("an HTTP client for traces")?;
        let traces = Arc::new(settings.traces(client.reqwest().context("an HTTP client for traces")?)?);
        Ok(Some(Self { settings, traces }))
    }

    /// Exports what is left.
    pub(crate) async fn finish(self) {
        // It blocks, and the requests are made on this runtime.
        let _ = tokio::task::spawn_blocking(move || self.traces.shutdown(FLUSH)).await;
    }
}
