//! Time as a value.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment in epoch milliseconds: wall-clock time, so that it means the same after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// The longest wait ever scheduled, in milliseconds. It ends below 2^53, up to which every JSON reader represents
/// integers exactly.
pub(crate) const LONGEST_WAIT_MS: u64 = 1 << 52;

impl Millis {
    /// Returns the moment this many milliseconds later, saturating.
    #[must_use]
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the milliseconds since an earlier moment; 0 if it is not earlier.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Returns a wait in whole milliseconds, rounded up so that it is never shorter than requested.
pub fn wait_ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).min(LONGEST_WAIT_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_shorter_than_asked() {
        assert_eq!(wait_ms(Duration::ZERO), 0);
        assert_eq!(wait_ms(Duration::from_nanos(1)), 1);
        assert_eq!(wait_ms(Duration::from_micros(1_001)), 2);
        assert_eq!(wait_ms(Duration::from_millis(5)), 5);
        assert_eq!(wait_ms(Duration::MAX), LONGEST_WAIT_MS);
    }

    #[test]
    fn the_end_of_the_longest_wait_is_kept_by_every_json_reader() {
        let year_3000 = Millis(32_503_680_000_000);
        assert!(year_3000.plus(LONGEST_WAIT_MS).0 < 1 << 53);
    }
}
