//! Says that this build does not export traces.

use std::{env, sync::Arc};

use anyhow::Result;
use everturn_orchestrator::Observer;

use crate::{absent::absent, config::Config, providers::Providers};

/// Variables that name a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Traces that are wanted. The server works without them, and these variables may be meant for other programs.
pub(crate) struct Exporting;

impl Exporting {
    /// Reads the environment. Returns `None` if it names no collector.
    #[expect(clippy::unnecessary_wraps, reason = "exporting may fail to start")]
    pub(crate) fn start(_: &Config, _: &Providers) -> Result<Option<Self>> {
        let is_set = |name: &str| env::var(name).is_ok_and(|value| !value.trim().is_empty());
        Ok(ENDPOINTS.iter().any(|name| is_set(name)).then_some(Self))
    }

    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        None
    }

    pub(crate) fn described(&self) -> String {
        format!("not sent: {}", absent("OTLP", "otlp"))
    }

    pub(crate) async fn finish(self) {}
}
