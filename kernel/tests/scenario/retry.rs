//! Failures before and after content.

use std::time::Duration;

use everturn_kernel::{Budget, FinishReason, Retry, Schedule, Settings, StreamEvent, Target};
use everturn_wire::{Category, DoneReason, EventBody, Failure};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Delays, Fact, START, Script, World,
    beat::{call, echoes, failed, finish, network_failure, overloaded, says, text, usage},
    play,
};

use super::run;

#[test]
fn three_overloads_and_then_an_answer_leave_no_trace() {
    let script = Script {
        steps: vec![vec![overloaded(), overloaded(), overloaded(), says("Hello")]],
        ..Script::default()
    };
    assert_snapshot!(play(&script), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 provider-retry attempt=0 category="overloaded" code="429" delayMs=5000 maxAttempts=21 message="HTTP 429: busy"
        0 > sleep 5000
     5000 status retry=asking/0 status="active"
     5000 > call 0.1
     5000 provider-retry attempt=1 category="overloaded" code="429" delayMs=10000 maxAttempts=21 message="HTTP 429: busy"
     5000 > sleep 10000
    15000 status retry=asking/1 status="active"
    15000 > call 0.2
    15000 provider-retry attempt=2 category="overloaded" code="429" delayMs=30000 maxAttempts=21 message="HTTP 429: busy"
    15000 > sleep 30000
    45000 status retry=asking/2 status="active"
    45000 > call 0.3
    45000 retry-ended attempts=3 outcome="recovered"
    45000 text-delta delta="Hello"
    45000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    45000 | Assistant text text="Hello"
    45000 done durationMs=45000 firstTokenMs=45000 reason="stop"
    45000 turn-sealed
    "#);
}

#[test]
fn a_retry_event_has_the_time_of_the_retry() {
    let mut world = World::new(Script { steps: vec![vec![overloaded(), says("Hi")]], ..Script::default() });
    world.begin();
    let told = world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ProviderRetry { next_at, max_attempts, hinted, .. }) => {
            Some((*next_at, *max_attempts, *hinted))
        }
        _ => None,
    });
    assert_eq!(told, [(Some(START.plus(5000).0), Some(21), None)]);
}

#[test]
fn a_provider_that_breaks_is_asked_again_three_times_in_a_step() {
    let broken = || vec![failed(Failure::new(Category::Internal, true, "the provider panicked"))];
    let steps = |times: usize, then: Vec<Beat>| {
        let attempts = vec![broken(); times].into_iter().chain([then]).collect();
        vec![attempts, vec![says("Hello")]]
    };
    let asks = || vec![call("a", "read"), finish(FinishReason::ToolCalls)];
    let (world, turn) = run(&Script { steps: steps(3, asks()), ..Script::default() });
    assert_eq!(world.log().sleeps(), [5_000, 10_000, 30_000]);
    assert_eq!(turn.outcome().expect("it is sealed").failure, None);
    let (world, turn) = run(&Script { steps: steps(4, asks()), ..Script::default() });
    assert_eq!(world.log().calls().len(), 4);
    assert_eq!(turn.outcome().expect("it is sealed").reason, DoneReason::Error);
    // Other failures in between neither count nor start the count again.
    let mixed = vec![broken(), overloaded(), broken(), broken(), broken(), says("never")];
    let (world, _) = run(&Script::one_step(mixed));
    assert_eq!(world.log().calls().len(), 5);
    // Each step has its own count.
    let mut steps = steps(3, asks());
    steps[1].insert(0, broken());
    let (_, turn) = run(&Script { steps, ..Script::default() });
    assert_eq!(turn.outcome().expect("it is sealed").failure, None);
}

#[test]
fn failing_for_ever_gives_up_with_the_last_failure() {
    let mut attempts = vec![vec![failed(network_failure("not the last"))]; 21];
    attempts.push(vec![failed(network_failure("the last"))]);
    let mut world = World::new(Script { steps: vec![attempts], ..Script::default() });
    let turn = world.begin().sealed().expect("the turn ends");

    assert_eq!(world.log().sleeps().len(), 21);
    assert_eq!(world.log().sleeps().iter().sum::<u64>(), 27_105_000);
    assert_eq!(world.log().calls().len(), 22);
    assert_eq!(
        turn.outcome().and_then(|end| end.failure.clone()).map(|f| f.message),
        Some("the last".into())
    );
    let transcript = world.log().transcript();
    assert_eq!(transcript.matches("provider-retry").count(), 21);
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("> call 0.21")).collect();
    assert_snapshot!(end.join("\n"), @r#"
    27105000 > call 0.21
    27105000 retry-ended attempts=21 message="the last" outcome="exhausted"
    27105000 | Assistant error category="network" message="the last" outcome="exhausted" retries=21 waitedMs=27105000
    27105000 error category="network" message="the last" outcome="exhausted" retries=21 waitedMs=27105000
    27105000 step-complete
    27105000 done durationMs=27105000 reason="error"
    27105000 turn-sealed
    "#);
}

#[test]
fn without_a_strategy_nothing_is_retried() {
    let script = Script { steps: vec![vec![overloaded()]], schedule: None, ..Script::default() };
    assert_snapshot!(play(&script), @r#"
    0 | User text text="Hi"
    0 user-message text="Hi"
    0 turn-start
    0 > call 0.0
    0 | Assistant error category="overloaded" code="429" message="HTTP 429: busy" outcome="exhausted"
    0 error category="overloaded" code="429" message="HTTP 429: busy" outcome="exhausted"
    0 step-complete
    0 done durationMs=0 reason="error"
    0 turn-sealed
    "#);
}

#[test]
fn a_strategy_that_gives_up_at_once_equals_none() {
    let without = Script { steps: vec![vec![overloaded()]], schedule: None, ..Script::default() };
    let silent = Script { schedule: Some(Delays::new([])), ..without.clone() };
    assert_eq!(play(&silent), play(&without));
}

#[test]
fn a_failure_that_stays_is_not_retried() {
    let refused = Failure::new(Category::Auth, false, "HTTP 401: who are you?");
    let script = Script { steps: vec![vec![vec![failed(refused)], says("no")]], ..Script::default() };
    let transcript = play(&script);
    assert!(!transcript.contains("provider-retry") && !transcript.contains("retry-ended"), "{transcript}");
    assert!(transcript.contains("error category=\"auth\""), "{transcript}");
}

#[test]
fn a_failure_that_stays_ends_a_series_of_retries() {
    let refused = Failure::new(Category::Auth, false, "HTTP 401: expired");
    let script = Script { steps: vec![vec![overloaded(), vec![failed(refused)]]], ..Script::default() };
    let transcript = play(&script);
    assert!(
        transcript.contains("retry-ended attempts=1 message=\"HTTP 401: expired\" outcome=\"not-retryable\""),
        "{transcript}"
    );
}

#[test]
fn a_stream_that_is_cut_before_content_is_retried() {
    let script = Script { steps: vec![vec![vec![Beat::Wait(7)], says("Hello")]], ..Script::default() };
    assert_snapshot!(play(&script), @r#"
       0 | User text text="Hi"
       0 user-message text="Hi"
       0 turn-start
       0 > call 0.0
       7 provider-retry attempt=0 category="invalid_response" delayMs=5000 maxAttempts=21 message="the provider's stream ended without a terminal event"
       7 > sleep 5000
    5007 status retry=asking/0 status="active"
    5007 > call 0.1
    5007 retry-ended attempts=1 outcome="recovered"
    5007 text-delta delta="Hello"
    5007 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    5007 | Assistant text text="Hello"
    5007 done durationMs=5007 firstTokenMs=5007 reason="stop"
    5007 turn-sealed
    "#);
}

#[test]
fn after_text_nothing_is_retried() {
    let cut = vec![text("Hel"), Beat::Wait(5), text("lo"), failed(network_failure("connection reset"))];
    let script = Script { steps: vec![vec![cut, says("never")]], ..Script::default() };
    assert_snapshot!(play(&script), @r#"
    0 | User text text="Hi"
    0 user-message text="Hi"
    0 turn-start
    0 > call 0.0
    0 text-delta delta="Hel"
    5 text-delta delta="lo"
    5 | Assistant text text="Hello"
    5 | Assistant error category="network" message="connection reset"
    5 error category="network" message="connection reset"
    5 step-complete decodeMs=5 genTotalMs=5 ttftMs=0
    5 done durationMs=5 firstTokenMs=0 reason="error"
    5 turn-sealed
    "#);
}

#[test]
fn reasoning_a_call_and_usage_count_as_content() {
    let thought = Beat::Say(StreamEvent::Reasoning("hm".into()));
    for content in [thought, call("a", "read"), usage(3, 1)] {
        let cut = vec![content, failed(network_failure("reset"))];
        let transcript = play(&Script { steps: vec![vec![cut, says("never")]], ..Script::default() });
        assert!(!transcript.contains("provider-retry"), "{transcript}");
        assert_eq!(transcript.matches("> call").count(), 1, "{transcript}");
    }
}

#[test]
fn usage_after_retries_ends_their_series() {
    let cut = vec![usage(3, 1), failed(network_failure("reset"))];
    let transcript = play(&Script { steps: vec![vec![overloaded(), cut]], ..Script::default() });
    assert!(
        transcript.contains("retry-ended attempts=1 message=\"reset\" outcome=\"not-retryable\""),
        "{transcript}"
    );
}

#[test]
fn an_answer_cut_off_before_content_is_not_retried() {
    for (reason, told) in [
        (FinishReason::Length, "category=\"invalid_response\" message=\"the model reached its token limit"),
        (FinishReason::ContentFilter, "category=\"content_policy\" message=\"the provider's content filter"),
    ] {
        let hidden = vec![echoes("thought"), usage(3, 1), finish(reason)];
        let transcript = play(&Script { steps: vec![vec![hidden, says("no")]], ..Script::default() });
        assert!(transcript.contains(told) && !transcript.contains("provider-retry"), "{transcript}");
        assert!(
            transcript.contains("usage={\"inputTokens\":3,\"outputTokens\":1}"),
            "its tokens count: {transcript}"
        );
    }
}

#[test]
fn an_answer_without_content_is_retried_and_its_tokens_count() {
    let empty = vec![usage(3, 1), finish(FinishReason::Stop)];
    let answer = vec![text("Hello"), usage(4, 2), finish(FinishReason::Stop)];
    let script = Script { steps: vec![vec![empty, answer]], ..Script::default() };
    assert_snapshot!(play(&script), @r#"
       0 | User text text="Hi"
       0 user-message text="Hi"
       0 turn-start
       0 > call 0.0
       0 usage usage={"inputTokens":3,"outputTokens":1}
       0 provider-retry attempt=0 category="invalid_response" delayMs=5000 maxAttempts=21 message="the provider sent an empty answer"
       0 > sleep 5000
    5000 status retry=asking/0 status="active"
    5000 > call 0.1
    5000 retry-ended attempts=1 outcome="recovered"
    5000 text-delta delta="Hello"
    5000 usage usage={"inputTokens":4,"outputTokens":2}
    5000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    5000 | Assistant text text="Hello"
    5000 done contextSize=6 durationMs=5000 firstTokenMs=5000 reason="stop" usage={"inputTokens":7,"outputTokens":3}
    5000 turn-sealed
    "#);
}

#[test]
fn attempts_are_numbered_per_step() {
    let asks = vec![call("a", "read"), finish(FinishReason::ToolCalls)];
    let script = Script {
        steps: vec![vec![overloaded(), overloaded(), asks], vec![overloaded(), says("Hello")]],
        ..Script::default()
    };
    let transcript = play(&script);
    let retries: Vec<_> = transcript.lines().filter(|line| line.contains("provider-retry")).collect();
    assert_snapshot!(retries.join("\n"), @r#"
        0 provider-retry attempt=0 category="overloaded" code="429" delayMs=5000 maxAttempts=21 message="HTTP 429: busy"
     5000 provider-retry attempt=1 category="overloaded" code="429" delayMs=10000 maxAttempts=21 message="HTTP 429: busy"
    15010 provider-retry attempt=0 category="overloaded" code="429" delayMs=5000 maxAttempts=21 message="HTTP 429: busy"
    "#);
}

#[test]
fn a_hint_only_lengthens_a_wait() {
    for (hint_ms, waits, hinted) in [(1_000, 5_000, ""), (6_500, 6_500, " hinted=true")] {
        let limited = Failure { hint_ms: Some(hint_ms), ..Failure::new(Category::RateLimited, true, "slow") };
        let script = Script { steps: vec![vec![vec![failed(limited)], says("Hello")]], ..Script::default() };
        let transcript = play(&script);
        assert!(transcript.contains(&format!("delayMs={waits}{hinted} maxAttempts")), "{transcript}");
        assert!(transcript.contains(&format!("> sleep {waits}\n")), "{transcript}");
    }
}

#[test]
fn a_wait_beyond_the_budget_is_not_begun() {
    let limited = Failure { hint_ms: Some(60_001), ..Failure::new(Category::RateLimited, true, "HTTP 429") };
    let mut script = Script { steps: vec![vec![overloaded(), vec![failed(limited)]]], ..Script::default() };
    script.settings.budget = Budget { max_wait_ms: Some(65_000), deadline: None };
    assert_snapshot!(play(&script), @r#"
       0 | User text text="Hi"
       0 user-message text="Hi"
       0 turn-start
       0 > call 0.0
       0 provider-retry attempt=0 budgetLeftMs=60000 category="overloaded" code="429" delayMs=5000 maxAttempts=21 message="HTTP 429: busy"
       0 > sleep 5000
    5000 status retry=asking/0 status="active"
    5000 > call 0.1
    5000 retry-ended attempts=1 message="the next attempt would be in 61 s, the budget leaves 60 s" outcome="too-long"
    5000 | Assistant error category="rate_limited" detail="the next attempt would be in 61 s, the budget leaves 60 s" message="HTTP 429" outcome="too-long" retries=1 waitedMs=5000
    5000 error category="rate_limited" detail="the next attempt would be in 61 s, the budget leaves 60 s" message="HTTP 429" outcome="too-long" retries=1 waitedMs=5000
    5000 step-complete
    5000 done durationMs=5000 reason="error"
    5000 turn-sealed
    "#);
}

#[test]
fn no_wait_ends_after_the_deadline() {
    let deadline = |ms| {
        let mut script = Script { steps: vec![vec![overloaded(), says("Hello")]], ..Script::default() };
        script.settings.budget = Budget { max_wait_ms: None, deadline: Some(START.plus(ms)) };
        play(&script)
    };
    assert!(deadline(5_000).contains("reason=\"stop\""), "it ends at the deadline");
    assert!(deadline(4_999).contains("the next attempt would be in 5 s, the budget leaves 4 s"));
}

/// Asks again at once, for ever.
struct AtOnce;

impl Schedule for AtOnce {
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

#[test]
fn a_schedule_that_never_waits_does_not_ask_in_a_tight_loop_or_for_ever() {
    let run = |targets: usize, max_wait_ms| {
        let targets = (0..targets).map(|number| Target::new("key", number.to_string())).collect();
        let budget = Budget { max_wait_ms: Some(max_wait_ms), ..Budget::default() };
        let settings = Settings { targets, budget, ..Settings::default() };
        let mut world =
            World::new(Script { settings, ..Script::one_step([overloaded()]) }).with_schedule(AtOnce);
        world.run().sealed().expect("the turn ends");
        world.check();
        assert!(world.transcript().contains(r#"outcome="too-long""#), "{}", world.transcript());
        world.log().sleeps().into_iter().filter(|ms| *ms > 0).collect::<Vec<_>>()
    };
    assert_eq!(run(0, 250), [100, 100]);
    assert_eq!(run(0, 99), [0; 0]);
    assert_eq!(run(12, 100), [100]);
}
