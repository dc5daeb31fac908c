//! Converts schedules to settings and back.

use std::{sync::Arc, time::Duration};

use everturn_kernel::{AfterContent, Cycling, Exponential, Handover, Schedule, Switches, Walls};
use everturn_wire::{OnQuota, RetryPreset, RetrySettings, RouteRevert, Value};

use super::SharedSchedule;
use crate::Patient;

/// The settings of a configured schedule; empty for an embedder's own schedule.
pub(super) fn settings_of(schedule: &dyn Schedule) -> RetrySettings {
    let Some(saved) = schedule.saved() else { return RetrySettings::default() };
    let quota = Some(if is_walled(&saved) { OnQuota::Park } else { OnQuota::Fail });
    let saved = inner(&saved);
    let preset = saved["name"].as_str().and_then(RetryPreset::from_word);
    let number = |name: &str| saved[name].as_u64();
    let retries = |number: Option<u64>| number.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    let figures = match preset {
        Some(RetryPreset::Exponential | RetryPreset::Interactive) => RetrySettings {
            preset,
            max_retries: retries(number("maxRetries")),
            base_delay_ms: number("baseMs"),
            max_delay_ms: Some(number("maxDelayMs").unwrap_or(0)),
            jitter: Some(saved["jitter"].as_f64().unwrap_or(0.0)),
            revert: saved["reverts"].as_bool().map(|reverts| match reverts {
                true => RouteRevert::CooldownExpiry,
                false => RouteRevert::Never,
            }),
            ..RetrySettings::default()
        },
        Some(RetryPreset::Cycling) => RetrySettings {
            preset,
            max_retries: retries(number("maxAttempts").map(|calls| calls.saturating_sub(1))),
            revert: saved["sticky"].as_bool().map(|is_sticky| match is_sticky {
                true => RouteRevert::Never,
                false => RouteRevert::CooldownExpiry,
            }),
            ..RetrySettings::default()
        },
        _ => RetrySettings { preset, ..RetrySettings::default() },
    };
    RetrySettings { quota, ..figures }
}

/// The schedule for the effective settings; `None` if it is the configured one. Parameters that settings do not cover
/// stay as configured.
pub(super) fn schedule(effective: &RetrySettings, base: &SharedSchedule) -> Option<SharedSchedule> {
    let configured = settings_of(&**base);
    let figures = |settings: &RetrySettings| RetrySettings {
        enabled: None,
        after_content: None,
        fallback_chains: None,
        quota: settings.quota.filter(|quota| *quota == OnQuota::Park),
        ..settings.clone()
    };
    if figures(effective) == figures(&configured) {
        return None;
    }
    let saved = base.saved().unwrap_or_default();
    let saved = inner(&saved);
    let millis = |ms: Option<u64>| Duration::from_millis(ms.unwrap_or(0));
    let max_delay = effective.max_delay_ms.filter(|most| *most > 0).map(Duration::from_millis);
    let max_retries = effective.max_retries.unwrap_or(0);
    let parks = effective.quota == Some(OnQuota::Park);
    let Some(preset) = effective.preset else {
        // An embedder's own schedule.
        return parks.then(|| -> SharedSchedule { Arc::new(Walls(base.clone())) });
    };
    let made: SharedSchedule = match preset {
        RetryPreset::Patient => Arc::new(Patient),
        RetryPreset::Exponential | RetryPreset::Interactive => {
            let reverts = effective.revert != Some(RouteRevert::Never);
            Arc::new(Exponential {
                base: millis(effective.base_delay_ms),
                max_delay,
                max_retries,
                jitter: effective.jitter.unwrap_or(0.0),
                seed: saved["seed"].as_u64().unwrap_or(0),
                switches: (preset == RetryPreset::Interactive).then_some(Switches { reverts }),
            })
        }
        RetryPreset::Cycling => Arc::new(Cycling {
            max_attempts: max_retries.saturating_add(1),
            clamp_hints: saved["clampHints"].as_bool().unwrap_or(Cycling::default().clamp_hints),
            sticky: effective.revert == Some(RouteRevert::Never),
        }),
        // From a newer version.
        _ => return None,
    };
    // With several targets, the schedule must choose between them.
    let wraps = base.chooses_targets() && !made.chooses_targets();
    let made: SharedSchedule = if wraps { Arc::new(Handover(made)) } else { made };
    Some(if parks { Arc::new(Walls(made)) } else { made })
}

/// A saved schedule without its wrappers.
fn inner(saved: &Value) -> &Value {
    let is_around = saved["name"] == Handover::NAME || is_walled(saved);
    if is_around { inner(&saved["schedule"]) } else { saved }
}

fn is_walled(saved: &Value) -> bool {
    saved["name"] == Walls::NAME
}

/// Converts `after_content` to a setting.
pub(super) fn word_of(after_content: AfterContent) -> everturn_wire::AfterContent {
    match after_content {
        AfterContent::Rewind => everturn_wire::AfterContent::Rewind,
        _ => everturn_wire::AfterContent::Keep,
    }
}

/// What happens after content: as set, else as configured.
pub(super) fn after_content_of(effective: &RetrySettings, configured: AfterContent) -> AfterContent {
    match effective.after_content {
        Some(everturn_wire::AfterContent::Rewind) => AfterContent::Rewind,
        Some(everturn_wire::AfterContent::Keep) => AfterContent::Keep,
        _ => configured,
    }
}
