//! Schedules as data.

use std::time::Duration;

use everturn_kernel::{Retry, Schedule};

/// The patient schedule in seconds; the last one is repeated.
const PATIENT_S: [u64; 8] = [5, 10, 30, 60, 300, 600, 900, 1_800];
/// How many waits of it add up to at most 8 h.
const PATIENT_RETRIES: usize = 21;

/// A schedule that is a list of waits, in milliseconds, one for each retry of a step. After the last one it gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays(Vec<u64>);

impl Delays {
    /// These waits in milliseconds.
    pub fn new(delays_ms: impl Into<Vec<u64>>) -> Self {
        Self(delays_ms.into())
    }

    /// 5 s, 10 s, 30 s, 1 min, 5 min, 10 min, 15 min, then 30 min again and again, as long as they add up to at most
    /// 8 h: 21 retries.
    pub fn patient() -> Self {
        let last = PATIENT_S[PATIENT_S.len() - 1];
        let seconds = PATIENT_S.into_iter().chain(std::iter::repeat(last)).take(PATIENT_RETRIES);
        Self(seconds.map(|seconds| seconds * 1_000).collect())
    }

    /// The wait before the retry of this 0-based number, in milliseconds; `None` = it gives up.
    pub fn get(&self, attempt: u32) -> Option<u64> {
        self.0.get(attempt as usize).copied()
    }
}

impl Default for Delays {
    /// [`Delays::patient`].
    fn default() -> Self {
        Self::patient()
    }
}

impl Schedule for Delays {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.get(retry.attempt).map(Duration::from_millis)
    }

    fn max_retries(&self) -> Option<u32> {
        u32::try_from(self.0.len()).ok()
    }
}
