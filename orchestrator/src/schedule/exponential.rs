//! Exponential backoff, for interactive use.

use std::time::Duration;

use everturn_kernel::{Jitter, Retry, Schedule};
use everturn_wire::Value;
use serde_json::json;

/// Exponential backoff: `base`, 2 x `base`, 4 x `base` ... up to `max_delay`, for `max_retries` retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The first wait.
    pub base: Duration,
    /// The longest wait; `None` = no cap.
    pub max_delay: Option<Duration>,
    /// Maximum number of retries per step.
    pub max_retries: u32,
    /// Relative jitter (0.1 = up to 10 % shorter or longer), so that many turns do not return at the same moment. A wait that
    /// the provider asked for is only lengthened: by up to this share, and at most by 2 % and 1 s. 0 = exact.
    pub jitter: f64,
    /// Seed of the jitter. Together with the turn and the attempt it determines each wait.
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

impl Exponential {
    /// Its name in saved form.
    pub(super) const NAME: &str = "exponential";

    /// Restores a saved schedule.
    pub(super) fn restore(saved: &Value) -> Option<Self> {
        let max_delay = match &saved["maxDelayMs"] {
            Value::Null => None,
            ms => Some(Duration::from_millis(ms.as_u64()?)),
        };
        Some(Self {
            base: Duration::from_millis(saved["baseMs"].as_u64()?),
            max_delay,
            max_retries: saved["maxRetries"].as_u64()?.try_into().ok()?,
            jitter: saved["jitter"].as_f64()?,
            seed: saved["seed"].as_u64()?,
        })
    }
}

fn whole_ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

impl Schedule for Exponential {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        if retry.attempt >= self.max_retries {
            return None;
        }
        let doubled = self.base.saturating_mul(2u32.saturating_pow(retry.attempt));
        let capped = self.max_delay.map_or(doubled, |max| doubled.min(max));
        let jitter = Jitter::new(self.jitter, self.seed ^ retry.key, retry.attempt);
        let spread = jitter.spread(capped);
        if spread == capped {
            return Some(capped);
        }
        Some(spread.max(jitter.lengthen(Duration::from_millis(retry.failure.hint_ms.unwrap_or(0)))))
    }

    fn saved(&self) -> Option<Value> {
        Some(json!({
            "name": Self::NAME,
            "baseMs": whole_ms(self.base),
            "maxDelayMs": self.max_delay.map(whole_ms),
            "maxRetries": self.max_retries,
            "jitter": self.jitter,
            "seed": self.seed,
        }))
    }

    fn max_retries(&self) -> Option<u32> {
        Some(self.max_retries)
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::{Category, Failure};

    use super::*;

    fn waits(schedule: &Exponential) -> Vec<u64> {
        let failure = Failure::new(Category::Overloaded, true, "");
        (0..)
            .map_while(|n| schedule.delay_for(&Retry::new(n, &failure)))
            .map(|d| d.as_millis() as u64)
            .collect()
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

    #[test]
    fn a_thousand_turns_that_fail_together_come_back_spread() {
        let schedule = Exponential { jitter: 0.1, ..Default::default() };
        for hint_ms in [None, Some(20_000)] {
            let failure = Failure { hint_ms, ..Failure::new(Category::RateLimited, true, "") };
            let wait = |turn: u32| {
                let retry = Retry::new(0, &failure).of_turn(&format!("turn-{turn}").as_str().into());
                assert_eq!(schedule.delay_for(&retry), schedule.delay_for(&retry), "it replays");
                schedule.delay_for(&retry).unwrap().as_millis() as u64
            };
            let mut waits: Vec<u64> = (0..1000).map(wait).collect();
            waits.sort_unstable();
            let span = waits[999] - waits[0];
            // Each tenth of the span has about a hundred: none is empty, and none has half of them.
            for part in 0..10 {
                let from = waits[0] + span * part / 10;
                let within = waits.iter().filter(|wait| (from..from + span / 10).contains(*wait)).count();
                assert!((50..200).contains(&within), "{hint_ms:?}: {within} in part {part} of {span} ms");
            }
            assert!(waits[0] >= hint_ms.unwrap_or(1_800), "never below a hint");
            assert!(waits[999] <= hint_ms.map_or(2_200, |hint| hint + hint / 50 + 1_000));
        }
    }
}
