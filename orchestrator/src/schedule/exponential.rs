//! Doubling waits, for someone who watches.

use std::time::Duration;

use everturn_kernel::Schedule;
use everturn_wire::Failure;

/// `base`, 2 x `base`, 4 x `base` ... up to `max_delay`, `max_retries` times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The first wait.
    pub base: Duration,
    /// The longest wait; `None` = no cap.
    pub max_delay: Option<Duration>,
    /// How many retries a step has.
    pub max_retries: u32,
    /// How far a wait may be off, as a part of it (0.1 = up to 10 % shorter or longer), so that many turns do not come
    /// back at the same moment. 0 = exact.
    pub jitter: f64,
    /// What the jitter is drawn from: the same seed gives the same waits.
    pub seed: u64,
}

impl Default for Exponential {
    /// 2 s, 4 s, 8 s, exact: three retries.
    fn default() -> Self {
        Self {
            base: Duration::from_secs(2),
            max_delay: Some(Duration::from_secs(300)),
            max_retries: 3,
            jitter: 0.0,
            seed: 0,
        }
    }
}

impl Schedule for Exponential {
    fn delay_for(&self, attempt: u32, _: &Failure) -> Option<Duration> {
        if attempt >= self.max_retries {
            return None;
        }
        let doubled = self.base.saturating_mul(2u32.saturating_pow(attempt));
        let capped = self.max_delay.map_or(doubled, |max| doubled.min(max));
        let jitter = if self.jitter.is_finite() { self.jitter.clamp(0.0, 1.0) } else { 0.0 };
        let factor = 1.0 + jitter * (2.0 * unit(self.seed, attempt) - 1.0);
        Some(Duration::try_from_secs_f64(capped.as_secs_f64() * factor).unwrap_or(capped))
    }

    fn max_retries(&self) -> Option<u32> {
        Some(self.max_retries)
    }
}

/// A number from 0 to 1 that depends on nothing but its arguments (SplitMix64).
fn unit(seed: u64, attempt: u32) -> f64 {
    let mut z = seed.wrapping_add(u64::from(attempt).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use everturn_wire::Category;

    use super::*;

    fn waits(schedule: &Exponential) -> Vec<u64> {
        let failure = Failure::new(Category::Overloaded, true, "");
        (0..).map_while(|n| schedule.delay_for(n, &failure)).map(|d| d.as_millis() as u64).collect()
    }

    #[test]
    fn doubles_up_to_its_cap() {
        assert_eq!(waits(&Exponential::default()), [2000, 4000, 8000]);
        let capped = Exponential { max_delay: Some(Duration::from_secs(5)), ..Default::default() };
        assert_eq!(waits(&capped), [2000, 4000, 5000]);
    }

    #[test]
    fn jitter_stays_within_its_part_and_replays() {
        let schedule = Exponential { jitter: 0.1, seed: 7, max_retries: 40, ..Default::default() };
        let exact = waits(&Exponential { jitter: 0.0, ..schedule });
        for (wait, exact) in waits(&schedule).iter().zip(&exact) {
            assert!(
                (*exact as f64 * 0.899..=*exact as f64 * 1.101).contains(&(*wait as f64)),
                "{wait} {exact}"
            );
        }
        assert_eq!(waits(&schedule), waits(&schedule));
        assert_ne!(waits(&schedule), waits(&Exponential { seed: 8, ..schedule }));
    }
}
