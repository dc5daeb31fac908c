//! Waiting out usage limits.

use everturn_kernel::{Handover, Interactive, Walls};
use everturn_testkit::{Delays, START};
use everturn_wire::{Category, Failure};

use super::route_run::{fails, refuses, run};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn used_up(hint_ms: impl Into<Option<u64>>) -> Failure {
    Failure { retryable: false, ..fails(Category::QuotaExhausted, hint_ms) }
}

fn played(names: &str, failures: impl IntoIterator<Item = Failure>) -> String {
    run(names, Walls(Handover(Delays::patient())), failures).transcript()
}

#[test]
fn a_limit_is_waited_for_until_it_resets() {
    assert_eq!(played("a", [used_up(30 * HOUR)]), "call a, 108000000, call a, recovered");
    let interactive = run("a", Walls(Interactive::default()), [used_up(30 * HOUR)]);
    assert_eq!(interactive.transcript(), "call a, 108000000, call a, recovered", "beyond its longest wait");
}

#[test]
fn without_a_known_end_the_waits_double_up_to_six_hours() {
    let waits = run("a", Walls(Delays::patient()), vec![used_up(None); 7]);
    let minutes = [15, 30, 60, 120, 240, 360, 360];
    assert_eq!(waits.now, START.plus(minutes.iter().sum::<u64>() * MINUTE));
}

#[test]
fn an_inner_schedule_with_shorter_waits_does_not_ask_more_often() {
    let waits = run("a", Walls(Interactive::default()), vec![used_up(None); 3]);
    assert_eq!(waits.now, START.plus((15 + 30 + 60) * MINUTE));
}

#[test]
fn a_limit_with_a_wrong_end_is_polled_once_a_minute() {
    let waits = run("a", Walls(Delays::patient()), vec![used_up(0); 4]);
    assert_eq!(waits.now, START.plus(1_000 + 3 * MINUTE));
}

#[test]
fn waits_add_up_to_at_most_seven_days() {
    let exactly = run("a", Walls(Delays::patient()), [used_up(168 * HOUR)]);
    assert_eq!(exactly.transcript(), "call a, 604800000, call a, recovered");
    let longer = run("a", Walls(Delays::patient()), [used_up(100 * HOUR), used_up(69 * HOUR)]);
    assert_eq!(longer.transcript(), "call a, 360000000, call a, too-long, error");
}

#[test]
fn other_targets_come_first() {
    assert_eq!(played("a b", [used_up(30 * HOUR)]), "call a, call b, recovered");
    let both = [used_up(30 * HOUR), used_up(20 * HOUR)];
    assert_eq!(played("a b", both), "call a, call b, 72000000, call b, recovered");
}

#[test]
fn a_wall_uses_up_no_retry_and_no_budget() {
    let one = || Walls(Delays::new([1_000]));
    let busy = || fails(Category::Overloaded, None);
    let passed = run("a", one(), [used_up(9 * HOUR), busy()]);
    assert_eq!(passed.transcript(), "call a, 32400000, call a, 1000, call a, recovered");
    let refused = run("a", one(), [used_up(9 * HOUR), busy(), busy()]);
    assert_eq!(refused.transcript(), "call a, 32400000, call a, 1000, call a, exhausted, error");
}

#[test]
fn other_failures_are_left_to_the_schedule() {
    assert_eq!(played("a", [refuses(Category::Auth)]), "call a, error");
    assert_eq!(played("a", [fails(Category::Overloaded, None)]), "call a, 5000, call a, recovered");
}
