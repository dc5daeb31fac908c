//! A schedule with real timers: what a turn is given in order to retry.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::{Directive, NextCall, Question, Retry, RetryStrategy, Schedule};
use everturn_wire::RetryOutcome;

use super::Informed;
use crate::{Clock, telemetry::GaugeGuard};

/// A schedule, the clock that waits for it, and the switches that turn retrying off.
pub(crate) struct TimedRetry {
    pub(crate) schedule: Informed,
    pub(crate) clock: Arc<dyn Clock>,
    /// For all conversations, and for this one.
    pub(crate) enabled: [Arc<AtomicBool>; 2],
}

impl TimedRetry {
    fn is_enabled(&self) -> bool {
        self.enabled.iter().all(|switch| switch.load(Ordering::Relaxed))
    }
}

impl Schedule for TimedRetry {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.is_enabled().then(|| self.schedule.delay_for(retry)).flatten()
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        match self.is_enabled() {
            true => self.schedule.decide(question),
            false if question.failure.retryable => RetryOutcome::Exhausted.into(),
            false => RetryOutcome::NotRetryable.into(),
        }
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        self.schedule.next_target(call)
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
