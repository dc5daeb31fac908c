//! The patient schedule, with a sleep that moves the world's clock.

use std::{future::pending, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{Retry, RetryStrategy, Schedule};

use super::{Clock, Fact, Log, Script};

/// 5 s, 10 s, 30 s, 60 s, 5 m, 10 m, 15 m, 30 m, then 30 m again and again.
const DELAYS: [u64; 8] = [5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 900_000, 1_800_000];
/// As long as they add up to at most 8 h.
const MOST: u64 = 8 * 3_600_000;

/// How a sleep behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nap {
    Whole,
    /// Ends after half of what was asked for, rounded up.
    Half,
    /// Never ends.
    Endless,
}

pub(crate) struct Patient {
    nap: Nap,
    silent: bool,
    clock: Clock,
    log: Log,
}

impl Patient {
    pub(crate) fn new(script: &Script, clock: Clock, log: Log) -> Self {
        Self { nap: script.nap, silent: script.silent, clock, log }
    }
}

fn delay(attempt: u32) -> u64 {
    DELAYS[(attempt as usize).min(DELAYS.len() - 1)]
}

impl Schedule for Patient {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        let fits = (0..=retry.attempt).map(delay).sum::<u64>() <= MOST;
        (fits && !self.silent).then(|| Duration::from_millis(delay(retry.attempt)))
    }

    fn max_retries(&self) -> Option<u32> {
        Some(21)
    }
}

#[async_trait]
impl RetryStrategy for Patient {
    async fn sleep(&self, wait: Duration) {
        let ms = u64::try_from(wait.as_millis()).expect("a wait fits");
        self.log.note(self.clock.now(), Fact::Slept(ms));
        match self.nap {
            Nap::Whole => self.clock.sleep(ms).await,
            Nap::Half => self.clock.sleep(ms.div_ceil(2)).await,
            Nap::Endless => pending().await,
        }
    }
}
