//! Jitter: spreads waits so that turns that failed together do not retry together. Derived from keys, not random.

use core::time::Duration;

/// The jitter of one retry of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    /// Maximum deviation as a fraction of the wait, 0 to 1; 0 = exact.
    part: f64,
    /// The pseudo-random draw, 0 to 1.
    draw: f64,
}

impl Jitter {
    /// Creates the jitter of a retry. `part` is the maximum deviation as a fraction of the wait; it is clamped to
    /// 0..=1, and NaN counts as 0. The same `key` and `attempt` give the same result.
    pub fn new(part: f64, key: u64, attempt: u32) -> Self {
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        Self { part, draw: unit(key, attempt) }
    }

    /// Returns the wait, shortened or lengthened by at most `part` of it.
    #[must_use]
    pub fn spread(&self, wait: Duration) -> Duration {
        if self.part == 0.0 {
            return wait;
        }
        let factor = 1.0 + self.part * (2.0 * self.draw - 1.0);
        Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(wait)
    }

    /// Returns a wait that the provider asked for, lengthened by at most `part` of it, 2 % and 1 s, and never
    /// shortened. Callers that received the same hint must not all return at the same moment.
    #[must_use]
    pub fn lengthen(&self, hinted: Duration) -> Duration {
        if self.part == 0.0 || hinted.is_zero() {
            return hinted;
        }
        let seconds = hinted.as_secs_f64();
        let late = (seconds * self.part).min(seconds * 0.02 + 1.0) * self.draw;
        hinted.saturating_add(Duration::try_from_secs_f64(late).unwrap_or_default())
    }
}

/// Returns a key for a name made of several parts. Uses FNV-1a, which unlike std's hashes is stable across machines and
/// versions.
pub(crate) fn key_of(parts: &[&str]) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    parts.iter().flat_map(|part| part.bytes()).fold(0xCBF2_9CE4_8422_2325, fold)
}

/// Returns a number from 0 to 1 that depends only on its arguments (SplitMix64).
fn unit(key: u64, attempt: u32) -> f64 {
    let mut z = key.wrapping_add(u64::from(attempt).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}
