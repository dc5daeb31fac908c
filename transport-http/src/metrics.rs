//! The figures of the process, for Prometheus.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the buckets of all durations, in seconds: from a tool that answers at once to a turn that waits for days.
const SECONDS: [f64; 24] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0,
    3_600.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0,
];

/// How often samples are put into their buckets when nobody asks for the figures: until then they take memory.
const UPKEEP: Duration = Duration::from_secs(5);

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
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(PrometheusBuilder::install_recorder);
        builder.map(Self).map_err(|error| MetricsError(error.to_string()))
    }

    /// Keeps the memory that samples take bounded while nobody asks for the figures. Never ends: run it in a task.
    pub async fn keep_up(self) {
        loop {
            tokio::time::sleep(UPKEEP).await;
            self.0.run_upkeep();
        }
    }

    /// Shows no figures: for a process that records none, or records them elsewhere.
    pub fn none() -> Self {
        Self(PrometheusBuilder::new().build_recorder().handle())
    }

    pub(crate) fn render(&self) -> String {
        self.0.render()
    }
}
