//! The preset `cycling`.

use everturn_pacing::Cycling;
use everturn_wire::{Category, Failure};

use super::route_run::{fails, refuses, run};

fn played(names: &str, max_attempts: u32, failures: impl IntoIterator<Item = Failure>) -> String {
    run(names, Cycling { max_attempts, ..Cycling::default() }, failures).transcript()
}

fn played_by_hints(names: &str, failures: impl IntoIterator<Item = Failure>) -> String {
    run(names, Cycling { max_attempts: 9, clamp_hints: false, sticky: false }, failures).transcript()
}

fn limited(hint_ms: impl Into<Option<u64>>) -> Failure {
    fails(Category::RateLimited, hint_ms)
}

#[test]
fn a_cycle_of_rate_limits_waits_once_for_the_longest() {
    let failures = [2_000, 5_000, 2_000, 5_000, 2_000].map(limited);
    assert_eq!(
        played("a b", 5, failures),
        "call a, call b, 5000, call a, call b, 5000, call a, exhausted, error"
    );
}

#[test]
fn a_mixed_cycle_waits_for_the_network_alone() {
    let slow = || fails(Category::Timeout, None);
    assert_eq!(
        played("a b", 9, [limited(20_000), slow()]),
        "call a, call b, 2000 clamped, call a, recovered"
    );
    assert_eq!(played("a b", 9, [slow(), limited(20_000)]), "call a, 1000, call b, call a, recovered");
}

#[test]
fn a_refused_target_is_dropped_and_the_last_refusal_ends_the_turn() {
    assert_eq!(played("a", 9, [refuses(Category::Auth)]), "call a, error");
    assert_eq!(
        played("a b c", 9, [limited(2_000), refuses(Category::Auth), limited(3_000), limited(1_000)]),
        "call a, call b, call c, 3000, call a, call c, recovered"
    );
    assert_eq!(
        played("a b", 9, [refuses(Category::Auth), refuses(Category::NotFound)]),
        "call a, call b, not-retryable, error"
    );
    // With one target left, its own limit ends the cycle.
    assert_eq!(
        played("a b", 9, [limited(7_000), refuses(Category::Auth)]),
        "call a, call b, 7000, call a, recovered"
    );
}

#[test]
fn clamped_hints_are_published_as_clamped() {
    assert_eq!(played("a", 9, [limited(120_000)]), "call a, 60000 clamped, call a, recovered");
    assert_eq!(played("a", 9, [limited(200)]), "call a, 1000, call a, recovered");
    assert_eq!(
        played("a", 9, [limited(None), limited(None)]),
        "call a, 1000, call a, 2000, call a, recovered"
    );
    // The longer hint still applies after its cycle is over.
    assert_eq!(
        played("a b", 9, [limited(5_000), limited(120_000), limited(5_000)]),
        "call a, call b, 60000, call a, 0 clamped, call b, recovered"
    );
}

#[test]
fn without_clamping_no_target_is_asked_before_its_hint_expires() {
    assert_eq!(played_by_hints("a", [limited(120_000)]), "call a, 120000, call a, recovered");
    let slow = fails(Category::Timeout, None);
    assert_eq!(played_by_hints("a b", [limited(20_000), slow]), "call a, call b, 20000, call a, recovered");
}

#[test]
fn a_failed_model_is_asked_again_at_once() {
    let broken = || fails(Category::ServerError, None);
    assert_eq!(
        played("a b", 9, [broken(), broken(), limited(None)]),
        "call a, call a, call a, call b, recovered"
    );
    assert_eq!(played("a b", 2, [broken(), broken()]), "call a, call a, exhausted, error");
}

#[test]
fn an_invalid_answer_moves_on_at_once() {
    let cut = || fails(Category::InvalidResponse, None);
    assert_eq!(
        played("a b", 4, [cut(), cut(), cut(), cut()]),
        "call a, call b, call a, call b, exhausted, error"
    );
}

#[test]
fn as_many_attempts_as_targets_ask_each_target_once() {
    let kinds = [Category::RateLimited, Category::Network, Category::InvalidResponse, Category::Timeout];
    let failures = kinds.map(|category| fails(category, None));
    let told = played("a b c d", 4, failures);
    let calls: Vec<_> = told.split(", ").filter(|word| word.starts_with("call")).collect();
    assert_eq!(calls, ["call a", "call b", "call c", "call d"]);
}

#[test]
fn one_attempt_is_one_call() {
    assert_eq!(played("a b", 1, [limited(None)]), "call a, error");
    assert_eq!(played("a b", 1, []), "call a");
}

#[test]
fn an_immediate_repeat_waits_no_longer_than_the_clamp() {
    let broken = fails(Category::ServerError, 3_600_000);
    assert_eq!(played("a b", 9, [broken]), "call a, 60000 clamped, call a, recovered");
}

#[test]
fn a_repeated_target_is_judged_by_its_last_failure() {
    let failures = [fails(Category::ServerError, None), limited(5_000), limited(2_000)];
    assert_eq!(played("a b", 9, failures), "call a, call a, call b, 5000, call a, recovered");
}

#[test]
fn a_final_failure_leaves_its_target_out_whatever_its_kind() {
    for category in [Category::RateLimited, Category::Network, Category::ServerError, Category::Unknown] {
        assert_eq!(played("a b", 9, [refuses(category)]), "call a, call b, recovered", "{category:?}");
    }
}
