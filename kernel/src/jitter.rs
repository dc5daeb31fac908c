//! Jitter: spreads waits, so that turns which failed together do not retry together. Drawn from keys, never at random.

use core::time::Duration;

/// A part of a wait, and a number drawn for one retry of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    /// 0 to 1; 0 = exact.
    part: f64,
    /// 0 to 1.
    draw: f64,
}

impl Jitter {
    /// Draws for a retry. `part` is how far a wait may be off, 0 to 1; anything else counts as the nearest of them, and what
    /// is no number as 0. The same `key` and `attempt` give the same draw.
    pub fn new(part: f64, key: u64, attempt: u32) -> Self {
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        Self { part, draw: unit(key, attempt) }
    }

    /// The wait, up to that part of it shorter or longer.
    #[must_use]
    pub fn spread(&self, wait: Duration) -> Duration {
        if self.part == 0.0 {
            return wait;
        }
        let factor = 1.0 + self.part * (2.0 * self.draw - 1.0);
        Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(wait)
    }

    /// A wait that the provider asked for: never shorter, and longer by up to that part of it, by 2 % and 1 s at most. Those
    /// that were told the same wait must not come back at the same moment either.
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

/// A key for a name that several parts make up. FNV-1a: stable across machines and versions, which std's hashes do not
/// guarantee.
pub(crate) fn key_of(parts: &[&str]) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    parts.iter().flat_map(|part| part.bytes()).fold(0xCBF2_9CE4_8422_2325, fold)
}

/// A number from 0 to 1 that depends on nothing but its arguments (SplitMix64).
fn unit(key: u64, attempt: u32) -> f64 {
    let mut z = key.wrapping_add(u64::from(attempt).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}
