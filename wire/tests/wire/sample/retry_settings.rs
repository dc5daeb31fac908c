//! Retry settings, and changes of them.

use everturn_wire::{
    AfterContent, Change, FallbackChains, OnQuota, RetryPatch, RetryPreset, RetrySettings,
    RetrySettingsState, RouteRevert,
};

use super::Family;

pub(crate) fn families() -> [Family; 3] {
    [
        Family::new("RetrySettings", &[RetrySettings::default(), all_settings()]),
        Family::new("RetryPatch", &patches()),
        Family::new("RetrySettingsState", &states()),
    ]
}

pub(crate) fn all_settings() -> RetrySettings {
    RetrySettings {
        preset: Some(RetryPreset::Interactive),
        enabled: Some(true),
        max_retries: Some(3),
        base_delay_ms: Some(2_000),
        max_delay_ms: Some(300_000),
        jitter: Some(0.25),
        revert: Some(RouteRevert::CooldownExpiry),
        after_content: Some(AfterContent::Rewind),
        quota: Some(OnQuota::Park),
        fallback_chains: Some(chains()),
    }
}

fn chains() -> FallbackChains {
    let names = vec!["spare/large".into(), "route/main".into()];
    FallbackChains([("main/large".into(), names)].into())
}

pub(crate) fn patches() -> Vec<RetryPatch> {
    let all = RetryPatch {
        preset: Some(Change::Set(RetryPreset::Exponential)),
        enabled: Some(Change::Inherit),
        max_retries: Some(Change::Set(9)),
        base_delay_ms: Some(Change::Inherit),
        max_delay_ms: Some(Change::Set(0)),
        jitter: Some(Change::Set(0.5)),
        revert: Some(Change::Set(RouteRevert::Never)),
        after_content: Some(Change::Set(AfterContent::Keep)),
        quota: Some(Change::Set(OnQuota::Fail)),
        fallback_chains: Some(Change::Set(chains())),
    };
    vec![RetryPatch::default(), all]
}

pub(crate) fn states() -> Vec<RetrySettingsState> {
    let set = Box::new(RetrySettings { enabled: Some(false), ..RetrySettings::default() });
    let effective = Box::new(RetrySettings { enabled: Some(false), ..all_settings() });
    let of = |id: Option<&str>| RetrySettingsState {
        conversation_id: id.map(Into::into),
        set: set.clone(),
        effective: effective.clone(),
    };
    vec![of(None), of(Some("c1"))]
}
