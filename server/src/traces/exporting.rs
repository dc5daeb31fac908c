//! Exports traces over OTLP.

use std::{env, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use everturn_orchestrator::Observer;
use everturn_provider::{HttpClient, HttpConfig, Redactor, Secret};
use everturn_telemetry::{Redact, Settings, Traces};

use crate::{config::Config, providers::Providers};

/// How long exporting the last spans may take at shutdown.
const FLUSH: Duration = Duration::from_secs(2);

/// Traces being exported to a collector.
pub(crate) struct Exporting {
    settings: Settings,
    traces: Arc<Traces>,
    /// Whether the traces have the content of messages.
    has_content: bool,
}

impl Exporting {
    /// Reads the environment. Returns `None` if it names no collector.
    pub(crate) fn start(config: &Config, providers: &Providers) -> Result<Option<Self>> {
        let Some(settings) = Settings::from_environment()? else { return Ok(None) };
        let client =
            HttpClient::new(HttpConfig::default()).context("cannot create the HTTP client for traces")?;
        let client = client.reqwest().context("cannot create the HTTP client for traces")?;
        let has_content = settings.message_content.unwrap_or(config.traces_content);
        let redact = has_content.then(|| redact(providers.clone()));
        let traces = Arc::new(settings.traces(client, redact)?);
        Ok(Some(Self { settings, traces, has_content }))
    }

    /// Returns what observes the turns.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        Some(self.traces.clone())
    }

    /// Says where traces go.
    pub(crate) fn described(&self) -> String {
        let content = if self.has_content { ", with the content of messages" } else { "" };
        format!("sent to {}{content}", self.settings.endpoint)
    }

    /// Exports pending spans.
    pub(crate) async fn finish(self) {
        // It blocks, and the requests run on this runtime.
        let _ = tokio::task::spawn_blocking(move || self.traces.shutdown(FLUSH)).await;
    }
}

/// Returns what removes all secrets of the server, and those sent to the collector.
fn redact(providers: Providers) -> Redact {
    let mut redactor = Redactor::default();
    for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
        let headers = env::var(name).unwrap_or_default();
        for (_, value) in headers.split(',').filter_map(|header| header.split_once('=')) {
            redactor.add(&Secret::new(value.replace("%20", " ")));
        }
    }
    Arc::new(move |text| {
        redactor.redact(text);
        providers.redact(text);
    })
}
