//! A turn's schedule with what it needs around it: what is known about targets, a clock, and the switch that turns it off.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{Directive, NextCall, Question, Retry, RetryStrategy, Schedule};
use everturn_pacing::RetryPolicy;
use everturn_wire::RetryOutcome;

use crate::{Clock, health::SharedHealth, retry_scope::Switch, telemetry::GaugeGuard};

/// A turn's schedule, which knows the target health shared by all turns of the process, and waits with real timers.
pub(crate) struct TimedRetry {
    pub(crate) policy: RetryPolicy,
    pub(crate) health: Arc<SharedHealth>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether failures are retried; `None` = yes.
    pub(crate) switch: Option<Switch>,
}

impl TimedRetry {
    fn is_on(&self) -> bool {
        self.switch.as_ref().is_none_or(Switch::is_on)
    }
}

impl Schedule for TimedRetry {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.is_on().then(|| self.policy.delay_for(retry)).flatten()
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        match self.is_on() {
            true => self.policy.decide(&question.knowing(&self.health.copy())),
            false if question.failure.retryable => RetryOutcome::Exhausted.into(),
            false => RetryOutcome::NotRetryable.into(),
        }
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        match call.targets {
            [] => call.current,
            _ => self.policy.next_target(&call.knowing(&self.health.copy())),
        }
    }

    fn counts_replies(&self) -> bool {
        self.policy.counts_replies()
    }

    fn max_retries(&self) -> Option<u32> {
        self.policy.max_retries()
    }
}

#[async_trait]
impl RetryStrategy for TimedRetry {
    async fn sleep(&self, delay: Duration) {
        let _waiting = GaugeGuard::waiting_turn();
        self.clock.sleep(delay).await;
    }
}
