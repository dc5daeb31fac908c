//! The saved form of a policy: named parameters, one layer around the other.

use alloc::boxed::Box;
use core::time::Duration;

use everturn_kernel::wait_ms;
use serde::{Deserialize, Serialize};

use super::{Cycling, Exponential, LongLimits, RetryPolicy, Switching, Waits};

/// A [`RetryPolicy`] as it is saved with a turn, so that another process can restore it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum SavedPolicy {
    /// The waits of [`super::Patient`].
    Patient,
    /// Those of an [`Exponential`] that only waits.
    Exponential {
        /// The first wait, in milliseconds.
        base_ms: u64,
        /// The longest wait, in milliseconds; `None` = no limit.
        max_delay_ms: Option<u64>,
        /// Maximum number of retries of a step.
        max_retries: u32,
        /// Maximum deviation of each wait, as a fraction of it.
        #[serde(default)]
        jitter: f64,
        /// Seed of the jitter.
        #[serde(default)]
        seed: u64,
    },
    /// Those of an [`Exponential`] that moves between targets.
    Interactive {
        /// The first wait, in milliseconds.
        base_ms: u64,
        /// The longest wait, in milliseconds; `None` = no limit.
        max_delay_ms: Option<u64>,
        /// Maximum number of retries of a step.
        max_retries: u32,
        /// Whether a step goes back to the first target once that target is free again.
        reverts: bool,
        /// Maximum deviation of each wait, as a fraction of it.
        #[serde(default)]
        jitter: f64,
        /// Seed of the jitter.
        #[serde(default)]
        seed: u64,
    },
    /// Those of [`Cycling`].
    Cycling {
        /// Maximum number of calls of a step.
        max_attempts: u32,
        /// Whether to clamp hints.
        clamp_hints: bool,
        /// Whether a step begins with the target that answered last. Older versions had only this way, and a turn goes on
        /// as it began.
        #[serde(default = "yes")]
        sticky: bool,
    },
    /// [`RetryPolicy::hands_over`], around its schedule.
    Handover {
        /// The schedule.
        schedule: Box<Self>,
    },
    /// [`LongLimits::SitOut`], around everything else.
    Walls {
        /// The rest of the policy.
        schedule: Box<Self>,
    },
}

fn yes() -> bool {
    true
}

impl RetryPolicy {
    /// Returns the saved form; `None` if the schedule is an embedder's own. [`LongLimits::GiveUp`] is not saved: it belongs to
    /// calls, not to turns.
    pub fn saved(&self) -> Option<SavedPolicy> {
        let waits = match &self.waits {
            Waits::Patient => SavedPolicy::Patient,
            Waits::Exponential(schedule) => schedule.saved(),
            Waits::Cycling(Cycling { max_attempts, clamp_hints, sticky }) => SavedPolicy::Cycling {
                max_attempts: *max_attempts,
                clamp_hints: *clamp_hints,
                sticky: *sticky,
            },
            Waits::Own(_) => return None,
        };
        let inner = if self.hands_over { SavedPolicy::Handover { schedule: Box::new(waits) } } else { waits };
        Some(match self.long_limits {
            LongLimits::SitOut => SavedPolicy::Walls { schedule: Box::new(inner) },
            LongLimits::WithinBudget | LongLimits::GiveUp => inner,
        })
    }
}

impl Exponential {
    fn saved(&self) -> SavedPolicy {
        let Self { base, max_delay, max_retries, jitter, seed, switching } = *self;
        let (base_ms, max_delay_ms) = (wait_ms(base), max_delay.map(wait_ms));
        match switching {
            None => SavedPolicy::Exponential { base_ms, max_delay_ms, max_retries, jitter, seed },
            Some(Switching { reverts }) => {
                SavedPolicy::Interactive { base_ms, max_delay_ms, max_retries, reverts, jitter, seed }
            }
        }
    }
}

impl From<SavedPolicy> for RetryPolicy {
    fn from(saved: SavedPolicy) -> Self {
        let millis = Duration::from_millis;
        match saved {
            SavedPolicy::Patient => Waits::Patient.into(),
            SavedPolicy::Exponential { base_ms, max_delay_ms, max_retries, jitter, seed } => {
                let (base, max_delay) = (millis(base_ms), max_delay_ms.map(millis));
                Exponential { base, max_delay, max_retries, jitter, seed, switching: None }.into()
            }
            SavedPolicy::Interactive { base_ms, max_delay_ms, max_retries, reverts, jitter, seed } => {
                let (base, max_delay) = (millis(base_ms), max_delay_ms.map(millis));
                let switching = Some(Switching { reverts });
                Exponential { base, max_delay, max_retries, jitter, seed, switching }.into()
            }
            SavedPolicy::Cycling { max_attempts, clamp_hints, sticky } => {
                Cycling { max_attempts, clamp_hints, sticky }.into()
            }
            SavedPolicy::Handover { schedule } => Self { hands_over: true, ..(*schedule).into() },
            SavedPolicy::Walls { schedule } => Self::from(*schedule).with(LongLimits::SitOut),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::ToString as _, vec::Vec};

    use serde_json::{Value, json};

    use super::*;
    use crate::Patient;

    fn spread() -> Exponential {
        let base = Duration::from_millis(1_500);
        Exponential { base, max_delay: None, max_retries: 7, jitter: 0.25, seed: u64::MAX, switching: None }
    }

    #[test]
    fn every_policy_is_restored_as_it_was_saved() {
        let quick = Exponential { switching: Some(Switching { reverts: false }), ..spread() };
        let cycling = Cycling { max_attempts: 7, clamp_hints: false, sticky: true };
        let all: [RetryPolicy; 5] = [
            Patient.into(),
            Exponential::default().into(),
            spread().into(),
            Exponential { jitter: 0.0, ..quick }.into(),
            cycling.into(),
        ];
        let layered = all.iter().flat_map(|policy| {
            let [alone, route] = [policy.clone(), policy.clone().on_route()];
            [alone.clone(), alone.with(LongLimits::SitOut), route.clone(), route.with(LongLimits::SitOut)]
        });
        for policy in layered.collect::<Vec<_>>() {
            let json = serde_json::to_value(policy.saved().unwrap()).unwrap();
            let again: SavedPolicy = serde_json::from_str(&json.to_string()).unwrap();
            assert_eq!(RetryPolicy::from(again), policy, "{json}");
        }
    }

    /// As written by every version since the presets began.
    #[test]
    fn what_older_versions_saved_is_read() {
        let read = |saved: Value| RetryPolicy::from(serde_json::from_value::<SavedPolicy>(saved).unwrap());
        let interactive = json!({
            "name": "interactive", "baseMs": 2_000, "maxDelayMs": 300_000, "maxRetries": 3, "reverts": true
        });
        let expected = RetryPolicy::from(Exponential::interactive());
        assert_eq!(read(interactive.clone()), expected);
        let walled = json!({ "name": "walls", "schedule": interactive });
        assert_eq!(read(walled), expected.with(LongLimits::SitOut));
        let handover = json!({ "name": "handover", "schedule": { "name": "patient" } });
        assert_eq!(read(handover), RetryPolicy::default().on_route());
        let plain = json!({
            "name": "exponential", "baseMs": 1_500, "maxDelayMs": null, "maxRetries": 7, "jitter": 0.25, "seed": u64::MAX
        });
        assert_eq!(read(plain), spread().into());
        let cycling = json!({ "name": "cycling", "maxAttempts": 3, "clampHints": true });
        assert_eq!(read(cycling), Cycling { sticky: true, ..Cycling::default() }.into());
    }

    #[test]
    fn it_is_written_for_older_versions() {
        let policy = RetryPolicy::from(Exponential::default()).on_route().with(LongLimits::SitOut);
        let expected = json!({ "name": "walls", "schedule": { "name": "handover", "schedule": {
            "name": "exponential", "baseMs": 2_000, "maxDelayMs": 300_000, "maxRetries": 3, "jitter": 0.0, "seed": 0
        } } });
        assert_eq!(serde_json::to_value(policy.saved()).unwrap(), expected);
    }
}
