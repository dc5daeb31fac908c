//! The saved form of a policy: named parameters, one layer around the other.

use alloc::boxed::Box;
use core::time::Duration;

use everturn_kernel::wait_ms;
use serde::{Deserialize, Serialize};

use super::{Cycling, Exponential, LongLimits, RetryPolicy, Switching, Waits};

/// A [`RetryPolicy`] as it is saved with a turn, so that another process can restore it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SavedPolicy(Saved);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
enum Saved {
    Patient,
    Exponential(SavedExponential),
    /// An [`Exponential`] that moves between targets.
    Interactive(SavedExponential),
    #[serde(rename_all = "camelCase")]
    Cycling {
        max_attempts: u32,
        clamp_hints: bool,
        /// Older versions had only this way, and a turn goes on as it began.
        #[serde(default = "yes")]
        sticky: bool,
    },
    /// [`RetryPolicy::hands_over`], around its schedule.
    Handover {
        schedule: Box<Self>,
    },
    /// [`LongLimits::SitOut`], around everything else.
    Walls {
        schedule: Box<Self>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedExponential {
    base_ms: u64,
    max_delay_ms: Option<u64>,
    max_retries: u32,
    /// Set if it moves between targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverts: Option<bool>,
    #[serde(default)]
    jitter: f64,
    #[serde(default)]
    seed: u64,
}

fn yes() -> bool {
    true
}

impl RetryPolicy {
    /// Returns the saved form; `None` if the schedule is an embedder's own. [`LongLimits::GiveUp`] is not saved: it belongs to
    /// calls, not to turns.
    pub fn saved(&self) -> Option<SavedPolicy> {
        let waits = match self.waits {
            Waits::Patient => Saved::Patient,
            Waits::Exponential(schedule) => match schedule.switching {
                None => Saved::Exponential(schedule.into()),
                Some(_) => Saved::Interactive(schedule.into()),
            },
            Waits::Cycling(Cycling { max_attempts, clamp_hints, sticky }) => {
                Saved::Cycling { max_attempts, clamp_hints, sticky }
            }
            Waits::Own(_) => return None,
        };
        let inner = if self.hands_over { Saved::Handover { schedule: Box::new(waits) } } else { waits };
        Some(SavedPolicy(match self.long_limits {
            LongLimits::SitOut => Saved::Walls { schedule: Box::new(inner) },
            LongLimits::WithinBudget | LongLimits::GiveUp => inner,
        }))
    }
}

impl From<SavedPolicy> for RetryPolicy {
    fn from(SavedPolicy(saved): SavedPolicy) -> Self {
        match saved {
            Saved::Patient => Waits::Patient.into(),
            Saved::Exponential(saved) => Exponential::from(saved).into(),
            Saved::Interactive(saved) => {
                let switching = Some(Switching { reverts: saved.reverts.unwrap_or(true) });
                Exponential { switching, ..saved.into() }.into()
            }
            Saved::Cycling { max_attempts, clamp_hints, sticky } => {
                Cycling { max_attempts, clamp_hints, sticky }.into()
            }
            Saved::Handover { schedule } => Self { hands_over: true, ..SavedPolicy(*schedule).into() },
            Saved::Walls { schedule } => Self::from(SavedPolicy(*schedule)).with(LongLimits::SitOut),
        }
    }
}

impl From<Exponential> for SavedExponential {
    fn from(schedule: Exponential) -> Self {
        let Exponential { base, max_delay, max_retries, jitter, seed, switching } = schedule;
        let (base_ms, max_delay_ms) = (wait_ms(base), max_delay.map(wait_ms));
        let reverts = switching.map(|switching| switching.reverts);
        Self { base_ms, max_delay_ms, max_retries, reverts, jitter, seed }
    }
}

impl From<SavedExponential> for Exponential {
    fn from(saved: SavedExponential) -> Self {
        let SavedExponential { base_ms, max_delay_ms, max_retries, jitter, seed, .. } = saved;
        let (base, max_delay) = (Duration::from_millis(base_ms), max_delay_ms.map(Duration::from_millis));
        Self { base, max_delay, max_retries, jitter, seed, switching: None }
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
