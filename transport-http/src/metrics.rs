//! The metrics of the process, for Prometheus.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the histogram buckets of all durations, in seconds: from a fast tool to a turn that waits for days.
const SECONDS: [f64; 24] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0,
    3_600.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0,
];

/// Interval at which samples are moved to their buckets if nobody reads the metrics, to free their memory.
const UPKEEP: Duration = Duration::from_secs(5);

/// The metrics of the process, for `GET /metrics`. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

/// Why metrics are not available.
#[derive(Debug, thiserror::Error)]
#[error("cannot record metrics: {0}; a process has one recorder, so install it once")]
pub struct MetricsError(String);

impl Metrics {
    /// Starts recording the metrics of this process. Call it once per process, before building anything else.
    ///
    /// # Errors
    /// Returns an error if the process already has a recorder.
    pub fn install() -> Result<Self, MetricsError> {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(PrometheusBuilder::install_recorder);
        builder.map(Self).map_err(|error| MetricsError(error.to_string()))
    }

    /// Bounds the memory of samples while nobody reads the metrics. Never returns, so run it in a task.
    pub async fn keep_up(self) {
        loop {
            tokio::time::sleep(UPKEEP).await;
            self.0.run_upkeep();
        }
    }

    /// Returns empty metrics, for a process that records none, or records them elsewhere.
    pub fn none() -> Self {
        Self(PrometheusBuilder::new().build_recorder().handle())
    }

    pub(crate) fn render(&self) -> String {
        self.0.render()
    }
}
