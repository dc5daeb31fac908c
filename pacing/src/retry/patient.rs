//! The default schedule: quick at first, then patient, for a working day.

use core::{iter, time::Duration};

use everturn_kernel::{Retry, Schedule};

/// The first waits, in seconds; the last one repeats.
const WAITS: [u64; 8] = [5, 10, 30, 60, 5 * 60, 10 * 60, 15 * 60, 30 * 60];

/// Maximum sum of the waits, in seconds: 8 h.
const BUDGET: u64 = 8 * 60 * 60;

/// Waits 5 s, 10 s, 30 s, 60 s, 5 min, 10 min, 15 min, 30 min, then repeatedly 30 min, up to 8 h in total: 21 retries,
/// 27,105 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patient;

impl Patient {
    /// Maximum sum of the waits of a step, including hints of the provider.
    pub const BUDGET: Duration = Duration::from_secs(BUDGET);

    fn waits() -> impl Iterator<Item = u64> {
        let last = WAITS[WAITS.len() - 1];
        let endless = WAITS.into_iter().chain(iter::repeat(last));
        endless.scan(0, |sum, wait| {
            *sum += wait;
            (*sum <= BUDGET).then_some(wait)
        })
    }
}

impl Schedule for Patient {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        Self::waits().nth(retry.attempt as usize).map(Duration::from_secs)
    }

    fn max_retries(&self) -> Option<u32> {
        u32::try_from(Self::waits().count()).ok()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use everturn_wire::{Category, Failure};

    use super::*;

    #[test]
    fn twenty_one_retries_that_add_up_to_27_105_seconds() {
        let failure = Failure::new(Category::Overloaded, true, "");
        let waits: Vec<_> =
            (0..).map_while(|attempt| Patient.delay_for(&Retry::new(attempt, &failure))).collect();
        assert_eq!(waits.len(), 21);
        assert_eq!(waits.iter().sum::<Duration>(), Duration::from_millis(27_105_000));
        assert_eq!(Patient.max_retries(), Some(21));
    }
}
