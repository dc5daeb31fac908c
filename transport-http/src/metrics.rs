//! The figures of the process, for Prometheus.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// The figures of the process, as `GET /metrics` shows them. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

/// Why the figures cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot record metrics: {0}; a process has one recorder, so install it once")]
pub struct MetricsError(String);

impl Metrics {
    /// Records the figures of this process from now on. Once per process, before anything else is built.
    ///
    /// # Errors
    /// When the process has a recorder already.
    pub fn install() -> Result<Self, MetricsError> {
        let installed = PrometheusBuilder::new().install_recorder();
        installed.map(Self).map_err(|error| MetricsError(error.to_string()))
    }

    /// Shows no figures: for a process that records none, or records them elsewhere.
    pub fn none() -> Self {
        Self(PrometheusBuilder::new().build_recorder().handle())
    }

    pub(crate) fn render(&self) -> String {
        self.0.render()
    }
}
