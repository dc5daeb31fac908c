//! Waiting out usage limits.

use everturn_kernel::{Budget, Schedule};
use everturn_pacing::{Cycling, Exponential, LongLimits, RetryPolicy};
use everturn_testkit::{Delays, START};
use everturn_wire::{Category, Failure};

use super::route_run::{RouteRun, fails, refuses, run, targets};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn own(schedule: impl Schedule + Send + Sync + 'static) -> RetryPolicy {
    RetryPolicy::own(schedule)
}

fn sitting_out(policy: impl Into<RetryPolicy>) -> RetryPolicy {
    policy.into().with(LongLimits::SitOut)
}

fn used_up(hint_ms: impl Into<Option<u64>>) -> Failure {
    Failure { retryable: false, ..fails(Category::QuotaExhausted, hint_ms) }
}

fn played(names: &str, failures: impl IntoIterator<Item = Failure>) -> String {
    run(names, sitting_out(own(Delays::patient()).on_route()), failures).transcript()
}

#[test]
fn a_limit_is_waited_for_until_it_resets() {
    assert_eq!(played("a", [used_up(30 * HOUR)]), "call a, 108000000, call a, recovered");
    let interactive = run("a", sitting_out(Exponential::interactive()), [used_up(30 * HOUR)]);
    assert_eq!(interactive.transcript(), "call a, 108000000, call a, recovered", "beyond its longest wait");
}

#[test]
fn without_a_known_end_the_waits_double_up_to_six_hours() {
    let waits = run("a", sitting_out(own(Delays::patient())), vec![used_up(None); 7]);
    let minutes = [15, 30, 60, 120, 240, 360, 360];
    assert_eq!(waits.now, START.plus(minutes.iter().sum::<u64>() * MINUTE));
}

#[test]
fn an_inner_schedule_with_shorter_waits_does_not_ask_more_often() {
    let waits = run("a", sitting_out(Exponential::interactive()), vec![used_up(None); 3]);
    assert_eq!(waits.now, START.plus((15 + 30 + 60) * MINUTE));
}

#[test]
fn a_limit_with_a_wrong_end_is_polled_once_a_minute() {
    let waits = run("a", sitting_out(own(Delays::patient())), vec![used_up(0); 4]);
    assert_eq!(waits.now, START.plus(5_000 + 3 * MINUTE), "5 s is the first wait of the schedule");
}

#[test]
fn waits_add_up_to_at_most_seven_days() {
    let exactly = run("a", sitting_out(own(Delays::patient())), [used_up(168 * HOUR)]);
    assert_eq!(exactly.transcript(), "call a, 604800000, call a, recovered");
    let longer = run("a", sitting_out(own(Delays::patient())), [used_up(100 * HOUR), used_up(69 * HOUR)]);
    assert_eq!(longer.transcript(), "call a, 360000000, call a, too-long, error");
}

/// Plays one failure with a budget of 8 h, and then an answer.
fn within_eight_hours(schedule: impl Schedule, failure: Failure) -> RouteRun<impl Schedule> {
    let budget = Budget { max_wait_ms: Some(8 * HOUR), ..Budget::default() };
    let mut run = RouteRun::within(budget, targets("a"), schedule);
    if run.fail(failure) {
        run.answer();
    }
    run
}

const PASSING: [Category; 3] = [Category::RateLimited, Category::Overloaded, Category::ServerError];

#[test]
fn a_wait_beyond_the_budget_is_parked_whatever_the_category() {
    for category in PASSING {
        let parked = within_eight_hours(sitting_out(own(Delays::patient())), fails(category, 30 * HOUR));
        assert_eq!(parked.transcript(), "call a, 108000000, call a, recovered", "{category:?}");
        let capped =
            within_eight_hours(sitting_out(Exponential::interactive()), fails(category, 10 * MINUTE));
        assert_eq!(capped.transcript(), "call a, 600000, call a, recovered", "{category:?}");
    }
    let parked = within_eight_hours(sitting_out(own(Delays::patient())), used_up(30 * HOUR));
    assert_eq!(parked.transcript(), "call a, 108000000, call a, recovered");
}

#[test]
fn without_parking_it_ends_the_turn_with_the_time_whatever_the_category() {
    let failures = PASSING.map(|category| fails(category, 30 * HOUR));
    for failure in failures.into_iter().chain([used_up(30 * HOUR)]) {
        let ended = within_eight_hours(Delays::patient(), failure.clone());
        assert_eq!(ended.transcript(), "call a, too-long, error", "{failure:?}");
        let said = "the next attempt would be in 1 d 6 h, the budget leaves 8 h";
        assert!(format!("{:?}", ended.happened).contains(said), "{:?}", ended.happened);
    }
}

#[test]
fn a_usage_limit_that_resets_within_the_budget_is_waited_for() {
    let waited = within_eight_hours(Delays::patient(), used_up(20 * MINUTE));
    assert_eq!(waited.transcript(), "call a, 1200000, call a, recovered");
    let endless = within_eight_hours(Delays::patient(), used_up(None));
    assert_eq!(endless.transcript(), "call a, error");
}

#[test]
fn other_targets_come_first() {
    assert_eq!(played("a b", [used_up(30 * HOUR)]), "call a, call b, recovered");
    let both = [used_up(30 * HOUR), used_up(20 * HOUR)];
    assert_eq!(played("a b", both), "call a, call b, 72000000, call b, recovered");
}

#[test]
fn a_wall_uses_up_no_retry_and_no_budget() {
    let one = || sitting_out(own(Delays::new([1_000])));
    let busy = || fails(Category::Overloaded, None);
    let passed = run("a", one(), [used_up(9 * HOUR), busy()]);
    assert_eq!(passed.transcript(), "call a, 32400000, call a, 1000, call a, recovered");
    let refused = run("a", one(), [used_up(9 * HOUR), busy(), busy()]);
    assert_eq!(refused.transcript(), "call a, 32400000, call a, 1000, call a, exhausted, error");
}

#[test]
fn a_parked_wait_outlasts_an_earlier_and_longer_hint() {
    let budget = Budget { max_wait_ms: Some(100_000), ..Budget::default() };
    let cycling = Cycling { max_attempts: 9, ..Cycling::default() };
    let mut run = RouteRun::within(budget, targets("a"), sitting_out(cycling));
    assert!([30 * HOUR, 90_000].into_iter().all(|hint_ms| run.fail(fails(Category::RateLimited, hint_ms))));
    run.answer();
    assert_eq!(run.transcript(), "call a, 60000 clamped, call a, 107940000, call a, recovered");
}

#[test]
fn other_failures_are_left_to_the_schedule() {
    assert_eq!(played("a", [refuses(Category::Auth)]), "call a, error");
    assert_eq!(played("a", [fails(Category::Overloaded, None)]), "call a, 5000, call a, recovered");
}
