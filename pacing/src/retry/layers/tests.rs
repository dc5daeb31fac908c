//! Tests which scope wins, field by field.

use everturn_wire::{OnQuota, RetryPreset::*};

use alloc::borrow::ToOwned as _;

use super::*;

fn retries(max_retries: u32) -> RetrySettings {
    RetrySettings { max_retries: Some(max_retries), ..RetrySettings::default() }
}

fn preset(preset: RetryPreset) -> RetrySettings {
    RetrySettings { preset: Some(preset), ..RetrySettings::default() }
}

/// A configured schedule with all parameters.
fn schedule(of: RetryPreset, max_retries: u32) -> RetrySettings {
    RetrySettings {
        preset: Some(of),
        max_retries: Some(max_retries),
        base_delay_ms: Some(7_000),
        max_delay_ms: Some(0),
        jitter: Some(0.5),
        ..RetrySettings::default()
    }
}

fn none() -> RetrySettings {
    RetrySettings::default()
}

#[test]
fn the_strongest_scope_that_sets_a_field_wins() {
    let all = [retries(1), retries(2), schedule(Exponential, 3), retries(4), schedule(Exponential, 5)];
    let nothing = none();
    for first in 0..5 {
        // The stronger scopes are not set; a missing route has no schedule of its own.
        let at = |place: usize| if place >= first { &all[place] } else { &nothing };
        let route = (first <= 2).then_some(&all[2]);
        let layers =
            Layers { message: at(0), conversation: at(1), route, global: at(3), configured: &all[4] };
        assert_eq!(effective(&layers).max_retries, Some(first as u32 + 1), "from scope {first}");
        assert_eq!(effective(&layers).base_delay_ms, Some(7_000), "the other fields are inherited");
    }
}

#[test]
fn fields_come_from_different_scopes() {
    let message = RetrySettings { enabled: Some(true), ..none() };
    let conversation = RetrySettings { enabled: Some(false), jitter: Some(0.25), ..none() };
    let global = RetrySettings { quota: Some(OnQuota::Park), jitter: Some(1.0), ..preset(Interactive) };
    let configured = schedule(Exponential, 9);
    let found = effective(&Layers {
        message: &message,
        conversation: &conversation,
        route: None,
        global: &global,
        configured: &configured,
    });
    let expected = RetrySettings {
        preset: Some(Interactive),
        enabled: Some(true),
        max_retries: Some(3),
        base_delay_ms: Some(2_000),
        max_delay_ms: Some(300_000),
        jitter: Some(0.25),
        revert: Some(RouteRevert::CooldownExpiry),
        after_content: None,
        quota: Some(OnQuota::Park),
        fallback_chains: None,
    };
    assert_eq!(found, expected, "the figures of the configured preset do not count for another one");
}

#[test]
fn a_route_with_its_own_schedule_hides_the_global_one_and_not_the_conversations() {
    let (route, global, nothing) = (schedule(Cycling, 6), preset(Patient), none());
    let layers = Layers {
        message: &nothing,
        conversation: &nothing,
        route: Some(&route),
        global: &global,
        configured: &nothing,
    };
    let found = effective(&layers);
    assert_eq!((found.preset, found.max_retries, found.base_delay_ms), (Some(Cycling), Some(6), None));
    let conversation = preset(Exponential);
    let found = effective(&Layers { conversation: &conversation, ..layers });
    assert_eq!((found.preset, found.max_retries, found.jitter), (Some(Exponential), Some(3), Some(0.1)));
    // A schedule without a name also hides it.
    let found = effective(&Layers { route: Some(&nothing), ..layers });
    assert_eq!((found.preset, found.max_retries, found.enabled), (None, None, Some(true)));
}

#[test]
fn a_figure_without_effect_is_refused_and_the_presets_that_have_it_are_named() {
    let refused = |set: &RetrySettings, effective: &RetrySettings| {
        check(set, effective).map_or_else(|InvalidRetrySettings(why)| why, |()| "taken".to_owned())
    };
    let why = refused(&retries(3), &preset(Patient));
    assert!(why.starts_with("maxRetries has no effect with"), "{why}");
    assert!(why.contains("patient: set preset to exponential, interactive or cycling as well"), "{why}");
    let why = refused(&retries(3), &none());
    assert!(why.contains("a schedule of the server's own"), "{why}");
    assert_eq!(refused(&retries(3), &preset(Cycling)), "taken");
    let jitter = RetrySettings { jitter: Some(0.1), ..none() };
    assert!(refused(&jitter, &preset(Cycling)).starts_with("jitter has no effect"));
    let revert = RetrySettings { revert: Some(RouteRevert::Never), ..none() };
    assert!(refused(&revert, &preset(Exponential)).contains("set preset to interactive"));
    assert_eq!(refused(&revert, &preset(Cycling)), "taken");
    assert_eq!(refused(&revert, &preset(Interactive)), "taken");
}

#[test]
fn a_first_wait_beyond_the_longest_is_refused() {
    let effective = |base, most| RetrySettings {
        base_delay_ms: Some(base),
        max_delay_ms: Some(most),
        ..preset(Interactive)
    };
    let base = RetrySettings { base_delay_ms: Some(9), ..none() };
    let why = check(&base, &effective(9, 8)).unwrap_err().0;
    assert!(why.contains("baseDelayMs, is 9 ms here, but maxDelayMs allows 8 ms"), "{why}");
    assert_eq!(check(&base, &effective(9, 9)), Ok(()));
    assert_eq!(check(&base, &effective(9, 0)), Ok(()), "0 = no limit");
    assert_eq!(check(&none(), &effective(9, 8)), Ok(()), "not the doing of this scope");
}
