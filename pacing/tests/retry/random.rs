//! Properties of every route, whatever fails and whatever is known about the targets.

use std::time::Duration;

use everturn_kernel::{Budget, Health, Millis, Schedule as _, Target};
use everturn_pacing::{Cycling, Exponential, LongLimits, RetryPolicy, Switching, Waits};
use everturn_testkit::{
    Delays, START,
    strategy::{any_failure, any_targets, config},
};
use everturn_wire::{Category, EventBody, Failure, RetryOutcome};
use proptest::{collection::vec, option, prelude::*};

use super::route_run::{Happened, RouteRun};

fn waits_out(policy: &RetryPolicy) -> bool {
    policy.long_limits == LongLimits::SitOut
}

pub(crate) fn any_preset() -> impl Strategy<Value = RetryPolicy> {
    let interactive = (1..5_000u64, option::weighted(0.8, 1_000..100_000u64), 0..8u32, any::<bool>())
        .prop_map(|(base_ms, cap_ms, max_retries, reverts)| {
            let base = Duration::from_millis(base_ms);
            let (max_delay, switching) = (cap_ms.map(Duration::from_millis), Some(Switching { reverts }));
            Exponential { base, max_delay, max_retries, switching, ..Exponential::default() }.into()
        });
    let cycling = (1..9u32, any::<(bool, bool)>()).prop_map(|(max_attempts, (clamp_hints, sticky))| {
        RetryPolicy::from(Cycling { max_attempts, clamp_hints, sticky })
    });
    let handover =
        vec(1..60_000u64, 0..8).prop_map(|delays| RetryPolicy::own(Delays::new(delays)).on_route());
    prop_oneof![2 => interactive, 2 => cycling, 1 => handover]
}

/// Returns `interactive` with jitter.
pub(crate) fn any_jittered() -> impl Strategy<Value = RetryPolicy> {
    let cap = option::weighted(0.5, 1_000..100_000u64);
    (1..5_000u64, cap, 0..8u32, any::<bool>(), 0.01..1.0).prop_map(
        |(base_ms, cap_ms, max_retries, reverts, jitter)| {
            let (base, max_delay) = (Duration::from_millis(base_ms), cap_ms.map(Duration::from_millis));
            let switching = Some(Switching { reverts });
            Exponential { base, max_delay, max_retries, jitter, seed: 0, switching }.into()
        },
    )
}

/// Returns any preset, with or without jitter; a third of them wait out limits beyond the budget.
fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    let preset = prop_oneof![3 => any_preset(), 1 => any_jittered()];
    (preset, prop::bool::weighted(0.35))
        .prop_map(|(preset, waits_out)| if waits_out { preset.with(LongLimits::SitOut) } else { preset })
}

/// Returns at least one target.
pub(crate) fn any_route() -> impl Strategy<Value = Vec<Target>> {
    any_targets().prop_map(|mut targets| {
        if targets.is_empty() {
            targets.push(Target::new("work", "a"));
        }
        targets
    })
}

/// Returns what other turns have reported about targets.
fn any_health() -> impl Strategy<Value = Vec<(Target, Failure)>> {
    let target = any_route().prop_map(|targets| targets[0].clone());
    vec((target, any_failure()), 0..4)
}

/// A failure, optionally preceded by a hold: its length, and when it is released early.
type Beat = (Option<(u64, Option<u64>)>, Failure);

/// Returns the failures of one or two steps.
fn any_beats() -> impl Strategy<Value = [Vec<Beat>; 2]> {
    let hold = (1..90_000u64, option::of(0..90_000u64));
    let used_up = (1..5 * 24 * 3_600_000u64).prop_map(|hint_ms| Failure {
        hint_ms: Some(hint_ms),
        ..Failure::new(Category::QuotaExhausted, false, "HTTP 429: used up")
    });
    let failure = prop_oneof![9 => any_failure(), 1 => used_up].boxed();
    let beat = || (option::weighted(0.3, hold.clone()), failure.clone());
    [vec(beat(), 0..10), vec(beat(), 0..10)]
}

/// Plays a step as far as possible. Returns whether another call is wanted.
fn play(run: &mut RouteRun<RetryPolicy>, beats: Vec<Beat>) -> bool {
    beats.into_iter().all(|(hold, failure)| {
        hold.is_none_or(|(wait_ms, opens_after)| run.hold(wait_ms, opens_after)) && run.fail(failure)
    })
}

proptest! {
    #![proptest_config(config(5_000))]

    #[test]
    fn every_route_follows_its_rules(route in any_route(), preset in any_policy(), known in any_health(), beats in any_beats(), max_wait_ms in 10_000..4 * 3_600_000u64) {
        let budget = Budget { max_wait_ms: Some(max_wait_ms), ..Budget::default() };
        let mut run = RouteRun::within(budget, route, preset.clone());
        for (target, failure) in &known {
            run.health.note(START, target, failure);
        }
        let before = run.health.clone();
        let [first, second] = beats;
        if !play(&mut run, first) {
            check(&run, &preset, &before);
            return Ok(());
        }
        check(&run, &preset, &before);
        let first_step = run.happened.len();
        run.step(1_000);
        let health = run.health.clone();
        if play(&mut run, second) {
            run.answer();
        }
        run.happened.drain(..first_step);
        check(&run, &preset, &health);
    }
}

/// Checks everything that must hold within a step; `before` is what was known at its start.
fn check(run: &RouteRun<RetryPolicy>, preset: &RetryPolicy, before: &Health) {
    let targets = &run.turn.settings().targets;
    let happened = run.transcript();
    let calls: Vec<(Millis, usize)> = run
        .happened
        .iter()
        .filter_map(|fact| match fact {
            Happened::Called { at, target } => Some((*at, *target)),
            _ => None,
        })
        .collect();
    if let Some(most) = preset.max_retries() {
        let most = most as usize + 1;
        // Handovers do not count. After each wait, and once the schedule is exhausted, every target may be asked once.
        let most = if preset.hands_over { (most + 1) * targets.len() } else { most };
        // Neither do holds and waits beyond the budget.
        let uncounted = |fact: &&Happened| match fact {
            Happened::Held { .. } => true,
            Happened::Told(event) => wall_wait(event).is_some(),
            _ => false,
        };
        let uncounted = run.happened.iter().filter(uncounted).count();
        let most =
            if waits_out(preset) && preset.hands_over { most * (uncounted + 1) } else { most + uncounted };
        assert!(calls.len() <= most, "{} calls: {happened}", calls.len());
    }
    check_walls(run, preset, before, &happened);
    let mut seen: Vec<(Millis, usize, &Failure)> = Vec::new();
    // Whether the hints of the next and the last call may be cut short.
    let (mut clamped, mut was_clamped, mut refused) = (false, false, Vec::new());
    // Retries of the step that do not count against the preset.
    let mut uncounted = 0;
    for fact in &run.happened {
        match fact {
            Happened::Told(
                event @ EventBody::ProviderRetry { attempt, delay_ms, clamped: is_clamped, shared, .. },
            ) => {
                // A call that was put off is the same call after its wait. A wait for a usage limit does not repeat
                // that an earlier hint was cut short.
                let says_nothing = shared.is_some() || wall_wait(event).is_some();
                clamped = *is_clamped == Some(true) || (says_nothing && was_clamped);
                // A wait for others, or beyond the budget, was not decided by the preset.
                let is_own = !says_nothing;
                if let Waits::Exponential(Exponential { max_delay: Some(cap), .. }) = &preset.waits
                    && is_own
                {
                    assert!(u128::from(*delay_ms) <= cap.as_millis(), "a wait beyond the limit: {happened}");
                }
                uncounted += u32::from(says_nothing);
                if let Waits::Exponential(interactive) = &preset.waits
                    && is_own
                    && *delay_ms > 0
                {
                    // A usage limit without a known end is assumed to last a minute.
                    let lasts = |failure: &Failure| {
                        failure.hint_ms.is_some() || failure.category == Category::QuotaExhausted
                    };
                    let is_plain = !seen.iter().any(|(_, _, failure)| lasts(failure))
                        && *before == Health::new()
                        && targets.len() == 1;
                    check_spread(interactive, *attempt - uncounted, *delay_ms, is_plain, &happened);
                }
                let may_clamp = matches!(preset.waits, Waits::Cycling(Cycling { clamp_hints: true, .. }));
                assert!(!clamped || may_clamp, "clamped by {preset:?}");
            }
            Happened::Failed { at, target, failure } => {
                if is_final(preset, failure) {
                    refused.push(*target);
                }
                seen.push((*at, *target, failure));
            }
            Happened::Called { at, target } => {
                assert!(
                    !refused.contains(target),
                    "a target that failed for good is asked again: {happened}"
                );
                for (failed_at, failed, failure) in &seen {
                    let over = failed_at.plus(failure.hint_ms.unwrap_or(0).min(1 << 52));
                    let is_due = *at >= over
                        || clamped
                        || !concerns(preset, failure, &targets[*failed], &targets[*target]);
                    assert!(is_due, "{} is asked before its hint is over: {happened}", targets[*target].name);
                }
                check_move(preset, before, &seen, *at, *target, targets, &happened);
                (was_clamped, clamped) = (clamped, false);
            }
            Happened::Told(_) | Happened::Held { .. } => {}
        }
    }
}

/// Checks that a wait is the doubled one with jitter. If `is_plain`, nothing else may lengthen it.
fn check_spread(preset: &Exponential, attempt: u32, delay_ms: u64, is_plain: bool, happened: &str) {
    let doubled = preset.base.as_millis() as f64 * 2f64.powi(attempt as i32);
    let (least, most) = (doubled * (1.0 - preset.jitter), doubled * (1.0 + preset.jitter));
    let delay = delay_ms as f64;
    assert!(delay >= least.floor(), "{delay_ms} ms, less than the jitter of {preset:?} allows: {happened}");
    assert!(
        !is_plain || delay <= most.ceil(),
        "{delay_ms} ms, more than the jitter of {preset:?} allows: {happened}"
    );
}

/// Returns the length of the wait if the event is a wait for a limit that is not charged to the budget.
fn wall_wait(event: &EventBody) -> Option<u64> {
    match event {
        EventBody::ProviderRetry { delay_ms, budget_left_ms: None, .. } => Some(*delay_ms),
        _ => None,
    }
}

/// The longest sum of waits that are not charged to the budget: 7 days.
const MOST_WALLED_MS: u64 = 7 * 24 * 3_600_000;

/// Checks the waits that are not charged to the budget: only a preset that waits limits out has them, at most 7 days in
/// total. If there is one target, no wait is shorter than the hint, and an estimate is between 15 min and 6 h. Such a
/// preset ends no turn because the provider asked for a long wait, whatever the failure, unless these days are over.
fn check_walls(run: &RouteRun<RetryPolicy>, preset: &RetryPolicy, before: &Health, happened: &str) {
    let (mut waited, mut hint, mut longest) = (0, None, 0);
    let is_only = run.turn.settings().targets.len() == 1;
    let parks = is_only && waits_out(preset) && *before == Health::new();
    for fact in &run.happened {
        match fact {
            Happened::Failed { failure, .. } => {
                hint = failure.hint_ms;
                longest = longest.max(hint.unwrap_or(0)).max(1_000);
            }
            // A hold beyond the budget ends the turn, too.
            Happened::Held { .. } => hint = None,
            Happened::Told(event) => {
                if let EventBody::RetryEnded { outcome: RetryOutcome::TooLong, .. } = event {
                    let is_over = hint.is_none() || longest > MOST_WALLED_MS - waited;
                    assert!(!parks || is_over, "a hint ended the turn: {happened}");
                }
                let Some(wait) = wall_wait(event) else { continue };
                assert!(waits_out(preset), "a wait beyond the budget: {happened}");
                waited += wait;
                assert!(
                    !is_only || wait >= hint.unwrap_or(15 * 60_000),
                    "a limit is asked about too early: {happened}"
                );
                assert!(
                    !is_only || hint.is_some() || wait <= 6 * 3_600_000,
                    "a guess of more than 6 h: {happened}"
                );
            }
            _ => {}
        }
    }
    assert!(waited <= MOST_WALLED_MS, "{waited} ms beyond the budget: {happened}");
}

/// Whether a target that failed like this is not asked again in the step. A usage limit with a known end passes.
fn is_final(preset: &RetryPolicy, failure: &Failure) -> bool {
    let is_wall = failure.category == Category::QuotaExhausted
        && match preset.waits {
            _ if waits_out(preset) => true,
            Waits::Exponential(_) => true,
            Waits::Cycling(_) => false,
            _ => failure.hint_ms.is_some(),
        };
    !failure.retryable && !is_wall
}

/// Whether a failure of one target keeps the preset from asking another one.
fn concerns(preset: &RetryPolicy, failure: &Failure, failed: &Target, next: &Target) -> bool {
    match (&preset.waits, failure.category) {
        (Waits::Cycling(_), _) => failed.is_same_request(next),
        (_, Category::QuotaExhausted | Category::Auth) => failed.credential == next.credential,
        (_, Category::Overloaded | Category::ServerError) => failed.model == next.model,
        _ => failed.is_same_request(next),
    }
}

/// Checks that a different target is asked only if it has no mark, and not twice without a wait.
fn check_move(
    preset: &RetryPolicy,
    before: &Health,
    seen: &[(Millis, usize, &Failure)],
    at: Millis,
    target: usize,
    targets: &[Target],
    happened: &str,
) {
    if matches!(preset.waits, Waits::Cycling(_)) {
        return;
    }
    let Some((_, last, _)) = seen.last() else { return };
    // A newer hint replaces an older one, and any newer mark of a credential replaces that of its rejected key.
    let was_rejected = before.mark(at, &targets[target]).is_some_and(|mark| mark.category == Category::Auth);
    let is_renewed = seen.iter().any(|(_, failed, failure)| {
        let (failed, next) = (&targets[*failed], &targets[target]);
        let is_hinted = failure.hint_ms.is_some() && failed.model == next.model;
        let is_of_credential = matches!(failure.category, Category::Auth | Category::QuotaExhausted);
        let replaces = failure.hint_ms.is_some() || (was_rejected && is_of_credential);
        is_hinted || (replaces && failed.credential == next.credential)
    });
    if *last != target && !is_renewed {
        let free_at = before.free_at(at, &targets[target]);
        assert_eq!(free_at, at, "{} is asked though it is marked: {happened}", targets[target].name);
    }
    let again = seen.iter().find(|(failed_at, failed, _)| *failed == target && *failed_at == at);
    assert!(again.is_none(), "{} is asked twice without a wait: {happened}", targets[target].name);
}
