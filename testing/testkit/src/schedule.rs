//! Schedules as data.

use std::time::Duration;

use everturn_kernel::{Retry, Schedule};

/// The waits of the patient schedule in seconds. The last one repeats.
const PATIENT_S: [u64; 8] = [5, 10, 30, 60, 300, 600, 900, 1_800];
/// Number of its waits that add up to at most 8 h.
const PATIENT_RETRIES: usize = 21;

/// A schedule given as a list of waits in milliseconds, one per retry of a step. It gives up after the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays(Vec<u64>);

impl Delays {
    /// Creates a schedule with these waits, in milliseconds.
    pub fn new(delays_ms: impl Into<Vec<u64>>) -> Self {
        Self(delays_ms.into())
    }

    /// Creates the patient schedule: 5 s, 10 s, 30 s, 1 min, 5 min, 10 min, 15 min, then every 30 min, up to a total of
    /// 8 h (21 retries).
    pub fn patient() -> Self {
        let last = PATIENT_S[PATIENT_S.len() - 1];
        let seconds = PATIENT_S.into_iter().chain(std::iter::repeat(last)).take(PATIENT_RETRIES);
        Self(seconds.map(|seconds| seconds * 1_000).collect())
    }

    /// Returns the wait before the retry with this 0-based number, in milliseconds; `None` if the schedule gives up.
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
