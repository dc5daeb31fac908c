//! Converts policies to settings and back.

use core::time::Duration;

use everturn_kernel::{Schedule as _, wait_ms};
use everturn_wire::{OnQuota, RetryPreset, RetrySettings, RouteRevert};

use super::{Cycling, Exponential, LongLimits, RetryPolicy, Switching, Waits};

impl RetryPolicy {
    /// Returns the settings that this policy amounts to. An embedder's own schedule has no parameters there.
    pub fn settings(&self) -> RetrySettings {
        let quota = Some(match self.long_limits {
            LongLimits::SitOut => OnQuota::Park,
            LongLimits::WithinBudget | LongLimits::GiveUp => OnQuota::Fail,
        });
        let revert = |reverts| if reverts { RouteRevert::CooldownExpiry } else { RouteRevert::Never };
        match &self.waits {
            Waits::Patient => {
                RetrySettings { preset: Some(RetryPreset::Patient), quota, ..RetrySettings::default() }
            }
            Waits::Exponential(schedule) => RetrySettings {
                preset: RetryPreset::from_word(schedule.name()),
                max_retries: Some(schedule.max_retries),
                base_delay_ms: Some(wait_ms(schedule.base)),
                max_delay_ms: Some(schedule.max_delay.map_or(0, wait_ms)),
                jitter: Some(schedule.jitter),
                revert: schedule.switching.map(|switching| revert(switching.reverts)),
                quota,
                ..RetrySettings::default()
            },
            Waits::Cycling(schedule) => RetrySettings {
                preset: Some(RetryPreset::Cycling),
                max_retries: Some(schedule.max_attempts.saturating_sub(1)),
                revert: Some(revert(!schedule.sticky)),
                quota,
                ..RetrySettings::default()
            },
            Waits::Own(_) => RetrySettings { quota, ..RetrySettings::default() },
        }
    }

    /// Returns the policy for the effective settings; `None` if it is this one, or from a newer version. Parameters that
    /// settings do not cover stay as they are.
    pub fn changed(&self, effective: &RetrySettings) -> Option<Self> {
        let policy = Self {
            waits: self.waits_of(effective)?,
            long_limits: match effective.quota {
                Some(OnQuota::Park) => LongLimits::SitOut,
                _ => LongLimits::WithinBudget,
            },
            ..self.clone()
        };
        // With several targets, somebody must choose between them.
        let policy = if self.chooses_targets() { policy.on_route() } else { policy };
        (policy != *self).then_some(policy)
    }

    fn waits_of(&self, effective: &RetrySettings) -> Option<Waits> {
        let max_retries = effective.max_retries.unwrap_or(0);
        let Some(preset) = effective.preset else { return Some(self.waits.clone()) };
        Some(match preset {
            RetryPreset::Patient => Waits::Patient,
            RetryPreset::Exponential | RetryPreset::Interactive => {
                let seed = if let Waits::Exponential(schedule) = &self.waits { schedule.seed } else { 0 };
                let reverts = effective.revert != Some(RouteRevert::Never);
                Waits::Exponential(Exponential {
                    base: Duration::from_millis(effective.base_delay_ms.unwrap_or(0)),
                    max_delay: effective.max_delay_ms.filter(|most| *most > 0).map(Duration::from_millis),
                    max_retries,
                    jitter: effective.jitter.unwrap_or(0.0),
                    seed,
                    switching: (preset == RetryPreset::Interactive).then_some(Switching { reverts }),
                })
            }
            RetryPreset::Cycling => {
                let usual =
                    if let Waits::Cycling(schedule) = &self.waits { *schedule } else { Cycling::default() };
                Waits::Cycling(Cycling {
                    max_attempts: max_retries.saturating_add(1),
                    clamp_hints: usual.clamp_hints,
                    sticky: effective.revert == Some(RouteRevert::Never),
                })
            }
            _ => return None,
        })
    }
}
