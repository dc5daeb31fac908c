//! A schedule with real timers: what a turn is given in order to retry.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::{Retry, RetryStrategy, Schedule};

use crate::{Clock, telemetry::GaugeGuard};

/// A schedule, the clock that waits for it, and the switches that turn retrying off.
pub(crate) struct TimedRetry {
    pub(crate) schedule: Arc<dyn Schedule + Send + Sync>,
    pub(crate) clock: Arc<dyn Clock>,
    /// For all conversations, and for this one.
    pub(crate) enabled: [Arc<AtomicBool>; 2],
}

impl Schedule for TimedRetry {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        let enabled = self.enabled.iter().all(|switch| switch.load(Ordering::Relaxed));
        enabled.then(|| self.schedule.delay_for(retry)).flatten()
    }

    fn max_retries(&self) -> Option<u32> {
        self.schedule.max_retries()
    }
}

#[async_trait]
impl RetryStrategy for TimedRetry {
    async fn sleep(&self, delay: Duration) {
        let _waiting = GaugeGuard::waiting_turn();
        self.clock.sleep(delay).await;
    }
}
