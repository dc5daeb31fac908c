//! Resolves the effective settings: a message's take precedence over its conversation's, then come its route, the
//! global settings, and the configuration. Pure.

use alloc::format;

use everturn_wire::{InvalidRetrySettings, RetryPreset, RetrySettings, RouteRevert};

/// The settings of all scopes, the strongest first.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// Those of the message that began the turn.
    pub message: &'a RetrySettings,
    /// Those of its conversation.
    pub conversation: &'a RetrySettings,
    /// The route's own schedule, if it has one.
    pub route: Option<&'a RetrySettings>,
    /// Those of all conversations.
    pub global: &'a RetrySettings,
    /// The configured schedule of all turns.
    pub configured: &'a RetrySettings,
}

/// The effective settings. Each field comes from the strongest scope that sets it. The parameters of a configured
/// schedule belong to its preset and are ignored under another one. A parameter that the preset does not have is
/// absent.
pub fn effective(layers: &Layers<'_>) -> RetrySettings {
    let Layers { message, conversation, route, global, configured } = *layers;
    // An embedder's own schedule has no name, but still hides weaker ones.
    let named = route.map_or(global.preset.or(configured.preset), |route| route.preset);
    let preset = message.preset.or(conversation.preset).or(named);
    let none = RetrySettings::default();
    let of_preset = |schedule: Option<&'_ RetrySettings>| match schedule {
        Some(schedule) if schedule.preset == preset => schedule.clone(),
        _ => none.clone(),
    };
    // These are not parameters of a preset.
    let general = [message, conversation, global, configured];
    let after_content = first(&general, |set| set.after_content);
    let quota = first(&general, |set| set.quota);
    let (route, configured) = (of_preset(route), of_preset(Some(configured)));
    let all = [message, conversation, &route, global, &configured];
    let usual = usual(preset);
    let figure = |has: bool, set: Option<u64>, usual: Option<u64>| set.or(usual).filter(|_| has);
    let max_retries = first(&all, |set| set.max_retries).or(usual.max_retries);
    RetrySettings {
        preset,
        enabled: Some(first(&all, |set| set.enabled).unwrap_or(true)),
        max_retries: max_retries.filter(|_| has_retries(preset)),
        base_delay_ms: figure(doubles(preset), first(&all, |set| set.base_delay_ms), usual.base_delay_ms),
        max_delay_ms: figure(doubles(preset), first(&all, |set| set.max_delay_ms), usual.max_delay_ms),
        jitter: first(&all, |set| set.jitter).or(usual.jitter).filter(|_| doubles(preset)),
        revert: first(&all, |set| set.revert).or(usual.revert).filter(|_| reverts(preset)),
        after_content,
        quota,
        fallback_chains: general.iter().find_map(|set| set.fallback_chains.clone()),
    }
}

/// The field's value in the strongest scope that sets it.
fn first<T: Copy>(all: &[&RetrySettings], field: impl Fn(&RetrySettings) -> Option<T>) -> Option<T> {
    all.iter().find_map(|settings| field(settings))
}

/// Default jitter of `exponential`: turns that failed together must not retry at the same moment.
const JITTER: f64 = 0.1;

/// The default parameters of a preset.
fn usual(preset: Option<RetryPreset>) -> RetrySettings {
    let doubling = RetrySettings {
        max_retries: Some(3),
        base_delay_ms: Some(2_000),
        max_delay_ms: Some(300_000),
        ..RetrySettings::default()
    };
    match preset {
        Some(RetryPreset::Exponential) => RetrySettings { jitter: Some(JITTER), ..doubling },
        Some(RetryPreset::Interactive) => {
            RetrySettings { jitter: Some(0.0), revert: Some(RouteRevert::CooldownExpiry), ..doubling }
        }
        Some(RetryPreset::Cycling) => RetrySettings {
            max_retries: Some(2),
            revert: Some(RouteRevert::CooldownExpiry),
            ..RetrySettings::default()
        },
        _ => RetrySettings::default(),
    }
}

fn doubles(preset: Option<RetryPreset>) -> bool {
    matches!(preset, Some(RetryPreset::Exponential | RetryPreset::Interactive))
}

fn reverts(preset: Option<RetryPreset>) -> bool {
    matches!(preset, Some(RetryPreset::Interactive | RetryPreset::Cycling))
}

fn has_retries(preset: Option<RetryPreset>) -> bool {
    doubles(preset) || preset == Some(RetryPreset::Cycling)
}

/// Checks the settings of one scope against the effective settings there.
///
/// # Errors
/// When a parameter has no effect, or the first wait exceeds the maximum.
pub fn check(set: &RetrySettings, effective: &RetrySettings) -> Result<(), InvalidRetrySettings> {
    let preset = effective.preset;
    let figures: [(&str, bool, bool, &str); 5] = [
        ("maxRetries", set.max_retries.is_some(), has_retries(preset), "exponential, interactive or cycling"),
        ("baseDelayMs", set.base_delay_ms.is_some(), doubles(preset), "exponential or interactive"),
        ("maxDelayMs", set.max_delay_ms.is_some(), doubles(preset), "exponential or interactive"),
        ("jitter", set.jitter.is_some(), doubles(preset), "exponential or interactive"),
        ("revert", set.revert.is_some(), reverts(preset), "interactive or cycling"),
    ];
    if let Some((field, _, _, presets)) = figures.into_iter().find(|(_, is_set, has, _)| *is_set && !has) {
        let name = preset.map_or("a schedule of the server's own", RetryPreset::as_str);
        return Err(InvalidRetrySettings(format!(
            "{field} has no effect with the preset that is in effect here, {name}: set preset to {presets} as well, or \
             leave {field} out"
        )));
    }
    let most = effective.max_delay_ms.filter(|most| *most > 0);
    if let (Some(base), Some(most)) = (effective.base_delay_ms, most)
        && base > most
        && (set.base_delay_ms.is_some() || set.max_delay_ms.is_some())
    {
        return Err(InvalidRetrySettings(format!(
            "the first wait, baseDelayMs, is {base} ms here, but maxDelayMs allows {most} ms: lower baseDelayMs, or raise \
             maxDelayMs (0 = no limit)"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
