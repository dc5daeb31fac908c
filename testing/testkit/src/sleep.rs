//! A retry strategy that sleeps on a fake clock.

use std::{future::pending, sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{Directive, NextCall, Question, Retry, RetryStrategy, Schedule};

use crate::{Clock, Fact, Log};

/// How a sleep behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nap {
    /// Lasts as long as requested.
    #[default]
    Whole,
    /// Ends early, after half the requested time, rounded up to a millisecond.
    Half,
    /// Never ends.
    Endless,
}

/// A retry strategy for tests: a schedule, and a sleep on a fake [`Clock`].
///
/// ```
/// use std::time::Duration;
///
/// use everturn_kernel::{Millis, RetryStrategy};
/// use everturn_testkit::{Clock, Delays, FakeSleep, Nap};
///
/// let clock = Clock::new(Millis(0));
/// let retry = FakeSleep::new(Delays::patient(), clock.clone()).nap(Nap::Half);
/// assert_eq!(clock.run(retry.sleep(Duration::from_secs(60))), Some(()));
/// assert_eq!(clock.now(), Millis(30_000));
/// ```
#[derive(Clone)]
pub struct FakeSleep {
    schedule: Arc<dyn Schedule + Send + Sync>,
    clock: Clock,
    log: Option<Log>,
    nap: Nap,
}

impl FakeSleep {
    /// Creates a strategy with this schedule that sleeps on this clock.
    pub fn new(schedule: impl Schedule + Send + Sync + 'static, clock: Clock) -> Self {
        Self::shared(Arc::new(schedule), clock)
    }

    pub(crate) fn shared(schedule: Arc<dyn Schedule + Send + Sync>, clock: Clock) -> Self {
        Self { schedule, clock, log: None, nap: Nap::Whole }
    }

    /// Records each sleep in this log, as [`Fact::Slept`].
    #[must_use]
    pub fn logged(self, log: Log) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Sets how sleeps behave.
    #[must_use]
    pub fn nap(self, nap: Nap) -> Self {
        Self { nap, ..self }
    }
}

impl Schedule for FakeSleep {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.schedule.delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        self.schedule.decide(question)
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
impl RetryStrategy for FakeSleep {
    async fn sleep(&self, delay: Duration) {
        let ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        if let Some(log) = &self.log {
            log.note(self.clock.now(), Fact::Slept(ms));
        }
        match self.nap {
            Nap::Whole => self.clock.sleep(ms).await,
            Nap::Half => self.clock.sleep(ms.div_ceil(2)).await,
            Nap::Endless => pending().await,
        }
    }
}
