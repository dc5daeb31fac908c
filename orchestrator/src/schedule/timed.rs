//! A schedule with real timers, which a turn uses to retry.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{Directive, NextCall, Question, Retry, RetryStrategy, Schedule};
use everturn_wire::RetryOutcome;

use super::Informed;
use crate::{Clock, layer::Switch, telemetry::GaugeGuard};

/// A schedule, the clock that waits for it, and the switch that turns retrying off.
pub(crate) struct TimedRetry {
    pub(crate) schedule: Informed,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) switch: Switch,
}

impl Schedule for TimedRetry {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.switch.is_on().then(|| self.schedule.delay_for(retry)).flatten()
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        match self.switch.is_on() {
            true => self.schedule.decide(question),
            false if question.failure.retryable => RetryOutcome::Exhausted.into(),
            false => RetryOutcome::NotRetryable.into(),
        }
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        self.schedule.next_target(call)
    }

    fn counts_replies(&self) -> bool {
        self.schedule.counts_replies()
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
