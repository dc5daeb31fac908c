//! Holds: calls that are put off because of what other turns found out.

use everturn_kernel::{Budget, Hold, Input, Settings, StreamEvent};
use everturn_wire::{Because, Category, Failure};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Delays, Script,
    beat::{failed, overloaded, says},
    play,
};

use super::run;

fn held(wait_ms: u64, in_budget: bool) -> Vec<Beat> {
    put_off(wait_ms, in_budget, false)
}

fn put_off(wait_ms: u64, in_budget: bool, open_ended: bool) -> Vec<Beat> {
    let failure = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
    let because = Because::Refused;
    vec![Beat::Say(StreamEvent::Held(Box::new(Hold {
        failure,
        wait_ms,
        shared: true,
        because,
        in_budget,
        open_ended,
    })))]
}

#[test]
fn a_call_that_is_put_off_uses_up_no_attempt() {
    let script = Script {
        schedule: Some(Delays::new([1_000])),
        ..Script::one_step([held(20_000, true), overloaded(), says("Hello")])
    };
    assert_snapshot!(play(&script), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 provider-retry attempt=0 because="refused" category="rate_limited" delayMs=20000 message="HTTP 429: slow down" shared=true
        0 > sleep 20000
    20000 status retry=asking/0 status="active"
    20000 > call 0.1
    20000 provider-retry attempt=1 category="overloaded" code="429" delayMs=1000 maxAttempts=2 message="HTTP 429: busy"
    20000 > sleep 1000
    21000 status retry=asking/1 status="active"
    21000 > call 0.2
    21000 retry-ended attempts=1 outcome="recovered"
    21000 text-delta delta="Hello"
    21000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    21000 | Assistant text text="Hello"
    21000 done durationMs=21000 firstTokenMs=21000 reason="stop"
    21000 turn-sealed
    "#);
}

#[test]
fn what_a_turn_gave_up_after_does_not_count_what_was_put_off() {
    let refused = vec![failed(Failure::new(Category::Auth, false, "HTTP 401"))];
    let script = |attempts: Vec<Vec<Beat>>| Script {
        schedule: Some(Delays::new([1_000])),
        ..Script::one_step(attempts)
    };
    let held = || held(20_000, true);
    let told = play(&script(vec![held(), overloaded(), held(), refused.clone()]));
    assert!(told.contains(r#"retry-ended attempts=1 message="HTTP 401" outcome="not-retryable""#), "{told}");
    assert!(told.contains(r#"error category="auth" message="HTTP 401" retries=1 waitedMs=41000"#), "{told}");
    let told = play(&script(vec![held(), refused]));
    assert!(told.contains(r#"retry-ended attempts=0 message="HTTP 401" outcome="not-retryable""#), "{told}");
    assert!(told.contains(r#"error category="auth" message="HTTP 401" waitedMs=20000"#), "{told}");
    let stopped = |beats| play(&Script { outside: vec![(21_500, Input::Abort)], ..script(beats) });
    for beats in [vec![held(), held()], vec![held(), overloaded(), held()]] {
        let made = beats.len() - 2;
        let told = stopped(beats);
        assert!(told.contains(&format!("retry-ended attempts={made} outcome=\"cancelled\"")), "{told}");
    }
}

/// The host found it affordable earlier, when a little more was left.
#[test]
fn a_hold_whose_end_nobody_knows_is_cut_to_the_budget_until_that_is_used_up() {
    let budget = Budget { max_wait_ms: Some(30_000), ..Budget::default() };
    let held = |wait_ms| put_off(wait_ms, true, true);
    let script = |beats: Vec<Vec<Beat>>| Script {
        settings: Settings { budget, ..Settings::default() },
        ..Script::one_step(beats)
    };
    let sleeps = |told: &str| -> Vec<String> {
        told.lines().filter_map(|line| line.split_once("> sleep ")).map(|(_, ms)| ms.to_owned()).collect()
    };
    let told = play(&script(vec![held(20_000), held(20_000), says("Hello")]));
    assert_eq!(sleeps(&told), ["20000", "10000"], "{told}");
    assert!(told.contains("30000 text-delta"), "{told}");
    let told = play(&script(vec![held(u64::MAX), held(1)]));
    assert_eq!(sleeps(&told), ["30000"], "{told}");
    assert!(told.contains("outcome=\"too-long\""), "{told}");
}

#[test]
fn a_hold_fits_the_budget_or_ends_the_turn() {
    let budget = Budget { max_wait_ms: Some(30_000), ..Budget::default() };
    let settings = Settings { budget, ..Settings::default() };
    let twice = |in_budget| Script {
        settings: settings.clone(),
        ..Script::one_step([held(20_000, in_budget), held(20_000, in_budget), says("Hello")])
    };
    let transcript = play(&twice(true));
    assert!(transcript.contains(r#"outcome="too-long""#) && !transcript.contains("Hello"), "{transcript}");
    let transcript = play(&twice(false));
    assert!(transcript.contains("40000 > call 0.2\n") && transcript.contains("Hello"), "{transcript}");
}

#[test]
fn without_a_strategy_a_person_can_still_end_a_hold() {
    let script = Script {
        schedule: None,
        outside: vec![(5_000, Input::RetryNow)],
        ..Script::one_step([held(20_000, true), says("Hello")])
    };
    let transcript = play(&script);
    assert!(transcript.contains("5000 > call 0.1\n"), "{transcript}");
}

#[test]
fn a_wait_for_the_network_is_not_charged_to_the_budget() {
    let budget = Budget { max_wait_ms: Some(30_000), ..Budget::default() };
    let settings = Settings { budget, ..Settings::default() };
    let first = |in_budget| Script {
        settings: settings.clone(),
        ..Script::one_step([held(28_000, in_budget), overloaded(), says("Hello")])
    };
    assert!(play(&first(false)).contains("Hello"));
    assert!(play(&first(true)).contains(r#"outcome="too-long""#));
}

#[test]
fn a_hold_can_be_released_early_and_a_retry_cannot() {
    let script = Script {
        schedule: Some(Delays::new([10_000])),
        outside: vec![(5_000, Input::Release), (6_000, Input::Release), (7_000, Input::Release)],
        ..Script::one_step([held(20_000, true), overloaded(), says("Hello")])
    };
    let transcript = play(&script);
    let calls: Vec<_> = transcript.lines().map(str::trim).filter(|line| line.contains("> call")).collect();
    assert_eq!(calls, ["0 > call 0.0", "5000 > call 0.1", "15000 > call 0.2"]);
    assert_eq!(run(&script).1.waited_ms(), 5_000 + 10_000, "as long as it waited");
}

#[test]
fn a_wait_that_ends_early_is_charged_as_far_as_it_went() {
    let budget = Budget { max_wait_ms: Some(30_000), ..Budget::default() };
    let script = |early: Input, second_ms| Script {
        settings: Settings { budget, ..Settings::default() },
        outside: vec![(5_000, early)],
        ..Script::one_step([held(20_000, true), held(second_ms, true), says("Hello")])
    };
    for early in [Input::Release, Input::RetryNow] {
        let transcript = play(&script(early.clone(), 25_000));
        assert!(transcript.contains("30000 > call 0.2\n") && transcript.contains("Hello"), "{transcript}");
        let transcript = play(&script(early, 25_001));
        assert!(
            transcript.contains(r#"outcome="too-long""#) && !transcript.contains("Hello"),
            "{transcript}"
        );
    }
}
