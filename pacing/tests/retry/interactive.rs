//! The preset `interactive`.

use std::time::Duration;

use everturn_kernel::{Directive, Health, Ledger, Question, Retry, Schedule};
use everturn_pacing::{Exponential, Switching};
use everturn_testkit::START;
use everturn_wire::{Category, EventBody, Failure};

use super::route_run::{RouteRun, fails, refuses, run, targets};

fn interactive() -> Exponential {
    Exponential::interactive()
}

fn without_cap() -> Exponential {
    Exponential { max_delay: None, ..interactive() }
}

fn played(names: &str, failures: impl IntoIterator<Item = everturn_wire::Failure>) -> String {
    run(names, interactive(), failures).transcript()
}

#[test]
fn two_four_and_eight_seconds_and_then_it_is_exhausted() {
    let broken = || fails(Category::Network, None);
    let told = run("a", interactive(), [broken(), broken(), broken(), broken()]);
    assert_eq!(told.transcript(), "call a, 2000, call a, 4000, call a, 8000, call a, exhausted, error");
    let numbers = told.retries().into_iter().map(|event| match event {
        EventBody::ProviderRetry { attempt, max_attempts, .. } => (attempt, max_attempts),
        _ => unreachable!(),
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [(0, Some(3)), (1, Some(3)), (2, Some(3))]);
}

#[test]
fn each_step_counts_its_own_retries() {
    let mut told = RouteRun::new(targets("a"), interactive());
    for _ in 0..3 {
        told.fail(fails(Category::Network, None));
    }
    told.step(0);
    told.fail(fails(Category::Network, None));
    told.answer();
    assert!(
        told.transcript().ends_with("recovered, call a, 2000, call a, recovered"),
        "{}",
        told.transcript()
    );
}

#[test]
fn a_hint_only_lengthens() {
    assert_eq!(played("a", [fails(Category::RateLimited, 20_000)]), "call a, 20000, call a, recovered");
    assert_eq!(played("a", [fails(Category::RateLimited, 1_000)]), "call a, 2000, call a, recovered");
}

#[test]
fn a_hint_beyond_the_longest_wait_fails_fast() {
    let told = run("a", interactive(), [fails(Category::Overloaded, 301_000)]);
    assert_eq!(told.transcript(), "call a, too-long, error");
    assert_eq!(told.now, everturn_testkit::START, "nothing is slept");
    let message = told.happened.iter().find_map(|happened| match happened {
        super::route_run::Happened::Told(EventBody::RetryEnded { message, .. }) => message.clone(),
        _ => None,
    });
    let expected = "the next attempt would be in 301 s, longer than the limit of 300 s: HTTP 500: it broke";
    assert_eq!(message.as_deref(), Some(expected));
    let at_the_limit = played("a", [fails(Category::Overloaded, 300_000)]);
    assert_eq!(at_the_limit, "call a, 300000, call a, recovered");
}

#[test]
fn without_a_longest_wait_it_waits() {
    let told = run("a", without_cap(), [fails(Category::Overloaded, 301_000)]);
    assert_eq!(told.transcript(), "call a, 301000, call a, recovered");
}

#[test]
fn another_credential_or_model_is_tried_before_any_wait() {
    let walled = || fails(Category::QuotaExhausted, 301_000);
    assert_eq!(played("work:m home:m", [walled()]), "call work:m, call home:m, recovered");
    assert_eq!(played("a b", [fails(Category::Overloaded, 301_000)]), "call a, call b, recovered");
    // The order of the route, except that at a usage limit the same model comes first.
    assert_eq!(played("work:m b home:m", [walled()]), "call work:m, call home:m, recovered");
    assert_eq!(
        played("work:m b home:m", [fails(Category::RateLimited, None)]),
        "call work:m, call b, recovered"
    );
    // An overload applies to a model with every credential, a usage limit to a credential with every model.
    assert_eq!(
        played("work:m home:m", [fails(Category::Overloaded, 9_000)]),
        "call work:m, 9000, call work:m, recovered"
    );
    assert_eq!(
        played("work:m work:n", [fails(Category::QuotaExhausted, 9_000)]),
        "call work:m, 9000, call work:m, recovered"
    );
}

#[test]
fn a_switch_is_a_retry_without_a_wait() {
    let told = run("a b", interactive(), [fails(Category::Overloaded, None)]);
    assert_eq!(told.switches(), ["a is overloaded"]);
    let [EventBody::ProviderRetry { attempt, delay_ms, target, .. }] = &told.retries()[..] else {
        panic!("one retry is told: {}", told.transcript())
    };
    assert_eq!((*attempt, *delay_ms, target.as_deref()), (0, 0, Some("b")));
}

#[test]
fn of_two_credentials_at_their_limit_the_first_to_be_free_is_waited_for() {
    let walls = || [fails(Category::QuotaExhausted, 90_000), fails(Category::QuotaExhausted, 40_000)];
    assert_eq!(played("work:m home:m", walls()), "call work:m, call home:m, 40000, call home:m, recovered");
    let [long, short] = walls();
    assert_eq!(
        played("work:m home:m", [short, long]),
        "call work:m, call home:m, 40000, call work:m, recovered"
    );
    assert_eq!(played("work:m home:m c", walls()), "call work:m, call home:m, call c, recovered");
    // Without a hint, a usage limit is assumed to last a minute.
    assert_eq!(played("a", [fails(Category::QuotaExhausted, None)]), "call a, 60000, call a, recovered");
}

#[test]
fn a_chain_is_walked_past_an_overload_and_a_refused_credential() {
    let told = run("a b c", interactive(), [fails(Category::Overloaded, None), refuses(Category::Auth)]);
    assert_eq!(told.transcript(), "call a, call b, call c, recovered");
    assert_eq!(told.switches(), ["a is overloaded", "b refused the credential"]);
}

#[test]
fn a_target_that_fails_for_good_is_not_asked_again() {
    assert_eq!(played("a", [refuses(Category::Auth)]), "call a, error");
    assert_eq!(
        played("a b", [refuses(Category::Auth), refuses(Category::NotFound)]),
        "call a, call b, not-retryable, error"
    );
    // The remaining target is waited for, although it is not free.
    assert_eq!(
        played("a b", [fails(Category::RateLimited, 30_000), refuses(Category::Auth)]),
        "call a, call b, 30000, call a, recovered"
    );
}

#[test]
fn failures_caused_by_the_request_cause_no_switch() {
    for category in [Category::InvalidRequest, Category::ContentPolicy, Category::ContextOverflow] {
        assert_eq!(played("a b", [refuses(category)]), "call a, error", "{category:?}");
    }
}

#[test]
fn a_chain_that_leads_back_to_the_same_request_never_loops() {
    let again = |hint_ms| fails(Category::Overloaded, hint_ms);
    // The second target is the first one under another name.
    let mut names = targets("a a b");
    names[1].name = "also-a".into();
    let mut told = RouteRun::new(names, interactive());
    told.fail(again(Some(0)));
    told.fail(again(Some(0)));
    told.fail(again(Some(0)));
    assert_eq!(told.transcript(), "call a, call b, 4000, call b, call a");
    assert_eq!(
        played("a b", vec![again(Some(0)); 9]),
        "call a, call b, 4000, call b, call a, exhausted, error"
    );
}

/// Returns what the next step does this many milliseconds after a switch from `a` to `b`.
fn next_step(after_ms: u64, policy: Exponential) -> String {
    let mut told = RouteRun::new(targets("a b"), policy);
    told.fail(fails(Category::Overloaded, 30_000));
    told.step(after_ms);
    told.answer();
    told.transcript()
}

#[test]
fn the_first_target_is_asked_again_when_its_cooldown_is_over() {
    assert_eq!(next_step(29_999, interactive()), "call a, call b, recovered, call b");
    assert_eq!(next_step(30_000, interactive()), "call a, call b, recovered, back to a, call a");
    let never = Exponential { switching: Some(Switching { reverts: false }), ..interactive() };
    assert_eq!(next_step(30_000, never), "call a, call b, recovered, call b");
}

#[test]
fn the_first_wait_and_the_number_of_retries_are_settings() {
    let quick = Exponential { base: Duration::from_millis(10), max_retries: 1, ..Exponential::interactive() };
    let told = run("a", quick, [fails(Category::Network, None), fails(Category::Network, None)]);
    assert_eq!(told.transcript(), "call a, 10, call a, exhausted, error");
}

#[test]
fn jitter_spreads_waits_and_neither_shortens_a_hint_nor_exceeds_the_longest_wait() {
    let schedule = Exponential { jitter: 0.5, max_delay: Some(Duration::from_secs(4)), ..interactive() };
    let ids: Vec<String> = (0..200).map(|n| format!("turn-{n}")).collect();
    let waits = |attempt, hint_ms| {
        let targets = targets("a");
        let failure = fails(Category::Network, hint_ms);
        let mut ledger = Ledger::default();
        ledger.retries = attempt;
        let mut waits: Vec<u64> = ids
            .iter()
            .map(|id| {
                let mut question = Question::new(START, &failure, &ledger, &targets);
                question.key = Retry::new(attempt, &failure).of_turn(&id.as_str().into()).key;
                let Directive::Ask(ask) = schedule.decide(&question) else { panic!("it waits") };
                assert_eq!(schedule.decide(&question), Directive::Ask(ask.clone()), "it replays");
                ask.wait.as_millis() as u64
            })
            .collect();
        waits.sort_unstable();
        waits
    };
    let first = waits(0, None);
    assert!(first[0] >= 1_000 && first[0] < 1_200 && first[199] <= 3_000 && first[199] > 2_800, "{first:?}");
    let capped = waits(1, None);
    assert!(capped[0] < 2_200 && capped[199] == 4_000, "{capped:?}");
    let hinted = waits(0, Some(3_500));
    assert!(hinted[0] >= 3_500 && hinted[199] == 4_000 && hinted[0] < hinted[100], "{hinted:?}");
}

/// Behaves as after a restart that loses the health. The ledger was saved with the turn.
struct Forgetful(Exponential);

impl Schedule for Forgetful {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.0.delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        self.0.decide(&question.knowing(&Health::new()))
    }
}

#[test]
fn the_steps_own_failures_count_if_nothing_else_is_known() {
    let down = || fails(Category::Overloaded, None);
    let told = run("a b", Forgetful(Exponential::interactive()), [down(), down()]);
    assert_eq!(told.transcript(), "call a, call b, 4000, call b, recovered");
}

#[test]
fn usage_limits_are_waited_for_until_the_first_ends() {
    let used_up = |hint_ms| Failure { retryable: false, ..fails(Category::QuotaExhausted, hint_ms) };
    let patient = Exponential { max_delay: None, ..Exponential::interactive() };
    let told = run("work:m home:m", patient, [used_up(7_200_000), used_up(10_800_000)]);
    assert_eq!(told.transcript(), "call work:m, call home:m, 7200000, call work:m, recovered");
    let told = run("work:m home:m", interactive(), [used_up(7_200_000), used_up(10_800_000)]);
    assert_eq!(told.transcript(), "call work:m, call home:m, too-long, error");
}

#[test]
fn a_final_failure_of_a_target_moves_on_whatever_its_kind() {
    for category in [Category::RateLimited, Category::Network, Category::ServerError, Category::Unknown] {
        assert_eq!(played("a b", [refuses(category)]), "call a, call b, recovered", "{category:?}");
    }
    assert_eq!(played("work:m work:n", [refuses(Category::Auth)]), "call work:m, error");
}

/// Hints that other turns received count like the turn's own.
#[test]
fn a_wall_that_another_turn_met_is_respected() {
    let mut told = RouteRun::new(targets("a"), interactive());
    let target = told.turn.target().unwrap().clone();
    told.health.note(told.now, &target, &fails(Category::RateLimited, 100_000));
    told.fail(fails(Category::Network, None));
    told.answer();
    assert_eq!(told.transcript(), "call a, 100000, call a, recovered");
    // A newer hint replaces an older one.
    let mut told = RouteRun::new(targets("a"), interactive());
    told.health.note(told.now, &target, &fails(Category::RateLimited, 100_000));
    told.fail(fails(Category::RateLimited, 5_000));
    told.answer();
    assert_eq!(told.transcript(), "call a, 5000, call a, recovered");
}

#[test]
fn what_others_find_out_during_a_wait_counts_when_it_ends() {
    let all = targets("a b");
    let wall = |hint_ms| fails(Category::RateLimited, hint_ms);
    let broken = || fails(Category::Network, None);
    // Both become limited shortly after one another. The one that is free again is asked.
    let mut told = RouteRun::new(all.clone(), interactive());
    told.health.note(told.now, &all[1], &wall(1_500));
    told.fail_while(broken(), |health, now| health.note(now, &all[0], &wall(100_000)));
    told.answer();
    assert_eq!(told.transcript(), "call a, 2000, call b, recovered");
    assert_eq!(told.switches(), ["a is not available"]);
    // A target that failed in this step is not free, even if it answered others.
    let mut told = RouteRun::new(all.clone(), interactive());
    told.fail(wall(50_000));
    told.fail_while(broken(), |health, now| {
        health.clear(now, &all[0]);
        health.note(now, &all[1], &wall(100_000));
    });
    told.answer();
    assert_eq!(told.transcript(), "call a, call b, 4000, call b, recovered");
}
