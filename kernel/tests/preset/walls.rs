//! Usage limits that are sat out.

use everturn_kernel::{Handover, Interactive, Walls};
use everturn_testkit::{Delays, START};
use everturn_wire::{Category, Failure};

use super::story::{fails, refuses, story};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn used_up(hint_ms: impl Into<Option<u64>>) -> Failure {
    Failure { retryable: false, ..fails(Category::QuotaExhausted, hint_ms) }
}

fn played(names: &str, failures: impl IntoIterator<Item = Failure>) -> String {
    story(names, Walls(Handover(Delays::patient())), failures).transcript()
}

#[test]
fn a_limit_is_waited_for_until_it_resets() {
    assert_eq!(played("a", [used_up(30 * HOUR)]), "call a, 108000000, call a, recovered");
    let interactive = story("a", Walls(Interactive::default()), [used_up(30 * HOUR)]);
    assert_eq!(interactive.transcript(), "call a, 108000000, call a, recovered", "beyond its longest wait");
}

#[test]
fn without_a_known_end_the_waits_double_up_to_six_hours() {
    let waits = story("a", Walls(Delays::patient()), vec![used_up(None); 7]);
    let minutes = [15, 30, 60, 120, 240, 360, 360];
    assert_eq!(waits.now, START.plus(minutes.iter().sum::<u64>() * MINUTE));
}

#[test]
fn a_preset_with_waits_of_its_own_asks_no_more_often() {
    let waits = story("a", Walls(Interactive::default()), vec![used_up(None); 3]);
    assert_eq!(waits.now, START.plus((15 + 30 + 60) * MINUTE));
}

#[test]
fn a_limit_that_is_said_to_be_over_and_is_not_is_asked_about_once_a_minute() {
    let waits = story("a", Walls(Delays::patient()), vec![used_up(0); 4]);
    assert_eq!(waits.now, START.plus(1_000 + 3 * MINUTE));
}

#[test]
fn seven_days_are_the_most() {
    let exactly = story("a", Walls(Delays::patient()), [used_up(168 * HOUR)]);
    assert_eq!(exactly.transcript(), "call a, 604800000, call a, recovered");
    let longer = story("a", Walls(Delays::patient()), [used_up(100 * HOUR), used_up(69 * HOUR)]);
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
    let passed = story("a", one(), [used_up(9 * HOUR), busy()]);
    assert_eq!(passed.transcript(), "call a, 32400000, call a, 1000, call a, recovered");
    let refused = story("a", one(), [used_up(9 * HOUR), busy(), busy()]);
    assert_eq!(refused.transcript(), "call a, 32400000, call a, 1000, call a, exhausted, error");
}

#[test]
fn all_else_is_the_schedules() {
    assert_eq!(played("a", [refuses(Category::Auth)]), "call a, error");
    assert_eq!(played("a", [fails(Category::Overloaded, None)]), "call a, 5000, call a, recovered");
}
