//! The preset `handover`: any schedule over a route.

use everturn_pacing::RetryPolicy;
use everturn_testkit::Delays;
use everturn_wire::{Category, EventBody, Failure};

use super::route_run::{fails, refuses, run};

fn patient() -> RetryPolicy {
    RetryPolicy::own(Delays::patient()).on_route()
}

fn played(names: &str, failures: impl IntoIterator<Item = Failure>) -> String {
    run(names, patient(), failures).transcript()
}

#[test]
fn with_one_target_it_is_the_schedule() {
    let failures = vec![fails(Category::Overloaded, None); 22];
    let alone = run("a", patient(), failures.clone());
    let schedule = run("a", Delays::patient(), failures);
    assert_eq!(alone.transcript(), schedule.transcript());
    assert_eq!(alone.now, everturn_testkit::START.plus(27_105_000));
}

#[test]
fn short_waits_are_waited_out() {
    assert_eq!(played("a b", [fails(Category::Overloaded, None)]), "call a, 5000, call a, recovered");
    assert_eq!(played("a b", [fails(Category::RateLimited, 5_000)]), "call a, 5000, call a, recovered");
}

#[test]
fn a_wall_or_a_refusal_hands_over_before_the_wait() {
    assert_eq!(played("a b", [fails(Category::RateLimited, 10_001)]), "call a, call b, recovered");
    assert_eq!(played("a b", [fails(Category::QuotaExhausted, None)]), "call a, call b, recovered");
    assert_eq!(played("a b", [refuses(Category::Auth)]), "call a, call b, recovered");
    assert_eq!(played("a", [refuses(Category::Auth)]), "call a, error");
    assert_eq!(played("a b", [refuses(Category::InvalidRequest)]), "call a, error");
}

#[test]
fn if_all_targets_are_limited_the_first_to_be_free_is_waited_for() {
    let wall = |hint_ms| fails(Category::RateLimited, hint_ms);
    assert_eq!(played("a b", [wall(100_000), wall(200_000)]), "call a, call b, 100000, call a, recovered");
    assert_eq!(
        played("a b", [wall(100_000), refuses(Category::Auth)]),
        "call a, call b, 100000, call a, recovered"
    );
}

#[test]
fn an_exhausted_schedule_hands_over_while_another_target_is_free() {
    let short = || RetryPolicy::own(Delays::new([5_000])).on_route();
    let down = || fails(Category::Overloaded, None);
    assert_eq!(
        run("a b", short(), [down(), down(), down()]).transcript(),
        "call a, 5000, call a, call b, exhausted, error"
    );
    assert_eq!(
        run("a b", short(), [down(), refuses(Category::Auth)]).transcript(),
        "call a, 5000, call a, call b, recovered"
    );
    assert_eq!(
        run("a b", short(), [refuses(Category::Auth), down(), refuses(Category::Auth)]).transcript(),
        "call a, call b, 5000, call b, exhausted, error"
    );
}

#[test]
fn a_free_target_is_not_left_idle_for_a_long_wait() {
    // The third wait of the schedule would be 30 s.
    let down = || fails(Category::Overloaded, None);
    let told = run("a b", patient(), [down(), down(), down()]);
    assert_eq!(told.transcript(), "call a, 5000, call a, 10000, call a, call b, recovered");
    // The handover used up no wait, and has no maximum for a client to display.
    let counts = told.retries().into_iter().map(|event| match event {
        EventBody::ProviderRetry { attempt, max_attempts, .. } => (attempt, max_attempts),
        _ => unreachable!(),
    });
    assert_eq!(counts.collect::<Vec<_>>(), [(0, Some(21)), (1, Some(21)), (2, None)]);
}

#[test]
fn a_usage_limit_with_a_known_end_is_waited_out() {
    let used_up = |hint_ms| Failure { retryable: false, ..fails(Category::QuotaExhausted, hint_ms) };
    assert_eq!(played("a", [used_up(7_200_000)]), "call a, 7200000, call a, recovered");
    assert_eq!(played("a b", [used_up(7_200_000)]), "call a, call b, recovered");
    assert_eq!(
        played("work:m home:m", [used_up(7_200_000), used_up(3_600_000)]),
        "call work:m, call home:m, 3600000, call home:m, recovered"
    );
    let endless = Failure { retryable: false, ..fails(Category::QuotaExhausted, None) };
    assert_eq!(played("a", [endless]), "call a, error");
}

#[test]
fn a_final_failure_of_a_target_moves_on_whatever_its_kind() {
    for category in [Category::RateLimited, Category::Network, Category::ServerError, Category::Unknown] {
        assert_eq!(played("a b", [refuses(category)]), "call a, call b, recovered", "{category:?}");
        assert_eq!(played("a", [refuses(category)]), "call a, error", "{category:?}");
    }
}

#[test]
fn a_refused_credential_is_not_waited_for() {
    assert_eq!(played("work:m work:n", [refuses(Category::Auth)]), "call work:m, error");
}
