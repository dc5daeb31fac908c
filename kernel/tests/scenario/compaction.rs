//! Compaction: a history that does not fit is summarized, and the step is asked again.

use everturn_kernel::{
    Budget, Compaction, Effects, FinishReason, Input, Op, Prompt, Settings, StreamEvent, Target, Turn, Want,
};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Delays, Fact, Run, START, Script, World,
    beat::{call, failed, finish, network_failure, overflow, overloaded, says, summary, usage},
    play,
};
use everturn_wire::{Category, CompactionOutcome, DoneReason, EventBody, Failure, TurnId};

use super::{calls, run};

fn settings() -> Settings {
    Settings { compaction: Some(Compaction::default()), ..Settings::default() }
}

/// Returns a script of one step with these attempts, and these replies for the summaries.
fn script_of(attempts: Vec<Vec<Beat>>, summaries: Vec<Vec<Beat>>) -> Script {
    Script { settings: settings(), summaries, ..Script::one_step(attempts) }
}

fn summarized() -> Vec<Vec<Beat>> {
    vec![vec![usage(900, 40), Beat::Wait(20), summary("They spoke of the weather.")]]
}

fn outcomes(world: &World) -> Vec<CompactionOutcome> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::CompactionCompleted { outcome, .. }) => Some(*outcome),
        _ => None,
    })
}

fn failure(turn: &Turn) -> Option<&Failure> {
    turn.outcome().and_then(|outcome| outcome.failure.as_ref())
}

#[test]
fn an_overflow_is_summarized_once_and_the_same_step_is_asked_again() {
    let script = script_of(vec![overflow(), says("It rains.")], summarized());
    assert_snapshot!(play(&script), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 compaction-started cause="overflow" message="HTTP 400: too long"
        0 > call 0.1
       20 usage usage={"inputTokens":900,"outputTokens":40}
       20 | System system keepsFrom=7 text="They spoke of the weather."
       20 compaction-completed keepsFrom=7 outcome="summarized" summary="They spoke of the weather."
       20 > call 0.2
       20 text-delta delta="It rains."
       20 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
       20 | Assistant text text="It rains."
       20 done durationMs=20 firstTokenMs=20 reason="stop" usage={"inputTokens":900,"outputTokens":40}
       20 turn-sealed
    "#);
}

#[test]
fn a_turn_that_only_summarizes_waits_like_any_other_and_ends_with_the_summary() {
    let settings = Settings { targets: vec![Target::new("work", "a")], ..Settings::default() };
    let (schedule, mut fx) = (Delays::new([1_000]), Effects::new());
    let mut turn =
        Turn::begin_compaction(TurnId::from("t"), settings.clone(), None, START, &schedule, &mut fx);
    let said = |attempt, event| Input::Provider(Op { step: 0, attempt }, event);
    let busy = || StreamEvent::Failed(Failure::new(Category::Overloaded, true, "busy"));
    turn.handle(START, said(1, busy()), &schedule, &mut fx);
    let later = START.plus(1_000);
    assert_eq!(turn.want(), Want::Wake(Op { step: 0, attempt: 2 }, later));
    // After a restart, it is still no turn that answers.
    let saved = serde_json::to_string(&turn.snapshot()).expect("a snapshot is JSON");
    turn = Turn::restore(serde_json::from_str(&saved).expect("the snapshot parses")).expect("it is restored");
    turn.handle(later, Input::Tick(Op { step: 0, attempt: 2 }), &schedule, &mut fx);
    let Some(Beat::Say(summary)) = Some(summary("Short.")) else { unreachable!() };
    turn.handle(later, said(2, summary), &schedule, &mut fx);
    assert_eq!(turn.outcome().map(|end| &end.reason), Some(&DoneReason::Stop));

    let mut turn =
        Turn::begin_compaction(TurnId::from("t"), settings, None, START, &Delays::new([]), &mut fx);
    turn.handle(START, said(1, busy()), &Delays::new([]), &mut fx);
    let failed = failure(&turn).expect("it failed");
    assert_eq!(failed.message, "the conversation could not be summarized: busy");
}

#[test]
fn without_a_compactor_an_overflow_ends_the_turn() {
    let (world, turn) = run(&Script::one_step([overflow(), says("never")]));
    assert_eq!(calls(&world), ["0.0"]);
    assert_eq!(failure(&turn).map(|failure| failure.category), Some(Category::ContextOverflow));
}

#[test]
fn a_history_that_still_does_not_fit_ends_the_turn() {
    let (world, turn) = run(&script_of(vec![overflow(), overflow(), says("never")], summarized()));
    assert_eq!((calls(&world).len(), outcomes(&world)), (3, vec![CompactionOutcome::Summarized]));
    assert_eq!(failure(&turn).map(|failure| failure.category), Some(Category::ContextOverflow));
}

#[test]
fn each_step_may_overflow() {
    let calls_tool = vec![call("a", "read"), finish(FinishReason::ToolCalls)];
    let script = Script {
        steps: vec![vec![overflow(), calls_tool], vec![overflow(), says("Done")]],
        ..script_of(Vec::new(), summarized())
    };
    let (world, turn) = run(&script);
    assert_eq!(calls(&world), ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]);
    assert_eq!(turn.outcome().map(|end| &end.reason), Some(&DoneReason::Stop));
}

#[test]
fn a_call_for_a_summary_is_retried_like_any_other() {
    let summaries = vec![overloaded(), overloaded(), vec![summary("Weather.")]];
    let script = script_of(vec![overloaded(), overflow(), overloaded(), says("It rains.")], summaries);
    assert_snapshot!(play(&script), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 provider-retry attempt=0 category="overloaded" code="429" delayMs=5000 maxAttempts=21 message="HTTP 429: busy"
        0 > sleep 5000
     5000 status retry=asking/0 status="active"
     5000 > call 0.1
     5000 retry-ended attempts=1 outcome="not-retryable"
     5000 compaction-started cause="overflow" message="HTTP 400: too long"
     5000 > call 0.2
     5000 provider-retry attempt=0 category="overloaded" code="429" delayMs=5000 maxAttempts=21 message="HTTP 429: busy"
     5000 > sleep 5000
    10000 status retry=asking/0 status="active"
    10000 > call 0.3
    10000 provider-retry attempt=1 category="overloaded" code="429" delayMs=10000 maxAttempts=21 message="HTTP 429: busy"
    10000 > sleep 10000
    20000 status retry=asking/1 status="active"
    20000 > call 0.4
    20000 retry-ended attempts=2 outcome="recovered"
    20000 | System system keepsFrom=7 text="Weather."
    20000 compaction-completed keepsFrom=7 outcome="summarized" summary="Weather."
    20000 > call 0.5
    20000 provider-retry attempt=0 category="overloaded" code="429" delayMs=5000 maxAttempts=21 message="HTTP 429: busy"
    20000 > sleep 5000
    25000 status retry=asking/0 status="active"
    25000 > call 0.6
    25000 retry-ended attempts=1 outcome="recovered"
    25000 text-delta delta="It rains."
    25000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    25000 | Assistant text text="It rains."
    25000 done durationMs=25000 firstTokenMs=25000 reason="stop"
    25000 turn-sealed
    "#);
}

#[test]
fn a_compactor_that_overflows_or_fails_for_good_ends_the_turn_clearly() {
    for (summaries, category) in [
        (overflow(), Category::ContextOverflow),
        (vec![failed(Failure::new(Category::Auth, false, "HTTP 401"))], Category::Auth),
    ] {
        let (world, turn) = run(&script_of(vec![overflow(), says("never")], vec![summaries]));
        assert_eq!((calls(&world).len(), outcomes(&world)), (2, vec![CompactionOutcome::Failed]));
        let failure = failure(&turn).expect("it failed");
        assert_eq!(failure.category, category);
        assert!(
            failure
                .message
                .starts_with("the conversation is too long for the model, and summarizing it failed: ")
        );
    }
}

#[test]
fn a_summary_that_is_empty_or_never_comes_is_a_failure_that_can_pass() {
    let used = || usage(900, 40);
    for bad in
        [vec![summary(" \n")], vec![used(), summary(" \n")], says("Once upon a time"), vec![used()], vec![]]
    {
        let (world, turn) =
            run(&script_of(vec![overflow(), says("Hello")], vec![bad, vec![summary("Short.")]]));
        assert_eq!(world.log().sleeps(), [5_000]);
        assert_eq!(outcomes(&world), [CompactionOutcome::Summarized]);
        assert_eq!(turn.outcome().map(|end| &end.reason), Some(&DoneReason::Stop));
    }
}

#[test]
fn a_stop_while_the_history_is_summarized_ends_both() {
    for wait in [vec![Beat::Hang], overloaded()] {
        let script = script_of(vec![overflow()], vec![wait]);
        let (world, turn) = run(&Script { outside: vec![(1_000, Input::Abort)], ..script });
        assert_eq!(outcomes(&world), [CompactionOutcome::Cancelled]);
        assert_eq!(turn.outcome().map(|end| &end.reason), Some(&DoneReason::Aborted));
    }
}

#[test]
fn before_an_overflow_the_step_continues_without_a_failed_summary() {
    let nearly_full = || vec![Beat::Say(StreamEvent::NearlyFull)];
    let withheld = || failed(Failure::new(Category::ContentPolicy, false, "withheld"));
    for bad in [
        overloaded(),
        overflow(),
        vec![failed(network_failure("reset"))],
        vec![usage(900, 40), withheld()],
        vec![usage(900, 40), summary(" ")],
    ] {
        let (world, turn) = run(&script_of(vec![nearly_full(), says("Hello")], vec![bad]));
        assert_eq!((calls(&world).len(), outcomes(&world)), (3, vec![CompactionOutcome::Failed]));
        assert!(world.log().sleeps().is_empty(), "it is not waited for");
        assert_eq!(turn.outcome().map(|end| &end.reason), Some(&DoneReason::Stop));
    }
    // One before an overflow and one after it: a step has at most two.
    let attempts = vec![nearly_full(), overflow(), overflow()];
    let (world, turn) = run(&script_of(attempts, summarized()));
    assert_eq!(outcomes(&world), [CompactionOutcome::Summarized; 2]);
    assert_eq!(failure(&turn).map(|failure| failure.category), Some(Category::ContextOverflow));
}

#[test]
fn the_waits_of_a_summary_are_charged_to_the_budget_of_the_step() {
    let budget = Budget { max_wait_ms: Some(12_000), deadline: None };
    // Before the summary, while it is made, and after it.
    for (attempts, summaries) in [
        (vec![overloaded(), overflow()], vec![overloaded(), overloaded(), vec![summary("Short.")]]),
        (vec![overflow(), overloaded(), overloaded()], vec![overloaded(), vec![summary("Short.")]]),
        (vec![overloaded(), overflow(), overloaded(), overloaded()], summarized()),
    ] {
        let script = script_of(attempts, summaries);
        let script = Script {
            settings: Settings { budget, ..script.settings },
            schedule: Some(Delays::new([5_000, 5_000, 5_000])),
            ..script
        };
        let (world, turn) = run(&script);
        assert_eq!(world.log().sleeps(), [5_000, 5_000]);
        assert_eq!(failure(&turn).map(|failure| failure.category), Some(Category::Overloaded));
    }
}

#[test]
fn separate_targets_summarize_and_the_turn_returns_to_its_own() {
    let own = Settings {
        targets: vec![Target::new("work", "a"), Target::new("work", "b")],
        compaction: Some(Compaction { targets: vec![Target::new("work", "small")] }),
        ..Settings::default()
    };
    let mut fx = Effects::new();
    let schedule = Delays::patient();
    let mut turn = Turn::begin(TurnId::from("t"), own, Prompt::default(), START, &mut fx);
    let mut say = |turn: &mut Turn, input| turn.handle(START, input, &schedule, &mut fx);
    let asked = |turn: &Turn| turn.target().map(|target| target.name.clone()).unwrap_or_default();
    let said = |attempt, event| Input::Provider(Op { step: 0, attempt }, event);
    let too_long = Failure::new(Category::ContextOverflow, false, "too long");
    say(&mut turn, said(0, StreamEvent::Failed(network_failure("reset"))));
    say(&mut turn, Input::GoTo(1));
    say(&mut turn, said(1, StreamEvent::Failed(too_long)));
    assert_eq!((asked(&turn), turn.is_summarizing()), ("work/small".into(), true));
    say(&mut turn, said(2, StreamEvent::Failed(network_failure("reset"))));
    let saved = serde_json::to_string(&turn.snapshot()).expect("a snapshot is JSON");
    turn = Turn::restore(serde_json::from_str(&saved).expect("the snapshot parses")).expect("it is restored");
    // The chosen target is one of the turn's own, so only the summary is requested again.
    say(&mut turn, Input::GoTo(0));
    assert_eq!(asked(&turn), "work/small");
    let Some(Beat::Say(summary)) = Some(summary("Short.")) else { unreachable!() };
    say(&mut turn, said(3, summary));
    assert_eq!((asked(&turn), turn.is_summarizing()), ("work/b".into(), false));
}

#[test]
fn a_restart_asks_for_the_summary_again() {
    let script = script_of(vec![overflow(), says("It rains.")], summarized());
    let (calm, _) = run(&script);
    for point in 0..calm.points() {
        let mut world = World::new(script.clone());
        world.crash_at(point);
        if world.begin() == Run::Crashed {
            world.crash_never();
            world.run().sealed().expect("the turn ends");
        }
        world.check();
        assert_eq!(calm.log().history(), world.log().history(), "crash at {point}");
        assert_eq!(outcomes(&world), [CompactionOutcome::Summarized], "crash at {point}");
    }
}

#[test]
fn what_follows_a_failed_summary_waits_for_the_hint_of_its_target() {
    let target = || vec![Target::new("work", "a")];
    let limited = Failure { hint_ms: Some(40_000), ..Failure::new(Category::RateLimited, true, "HTTP 429") };
    let script =
        script_of(vec![vec![Beat::Say(StreamEvent::NearlyFull)], says("Hello")], vec![vec![failed(limited)]]);
    let compaction = Some(Compaction { targets: target() });
    let settings = Settings { targets: target(), compaction, ..script.settings };
    let (world, turn) = run(&Script { settings, ..script });
    assert_eq!((world.log().sleeps(), calls(&world).len()), (vec![40_000], 3));
    assert_eq!(turn.outcome().expect("it is sealed").failure, None);
}

#[test]
fn calls_for_an_answer_are_counted_without_those_for_summaries_or_after_crashes() {
    let summaries = vec![overloaded(), overloaded(), vec![summary("They spoke of the weather.")]];
    let script = script_of(vec![overflow(), overloaded(), says("It rains.")], summaries);
    let (_, turn) = run(&script);
    assert_eq!((turn.answer_calls(), turn.steps(), turn.retries()), (3, 1, 3));
    for at in 0..40 {
        let mut world = World::new(script.clone());
        world.crash_at(at);
        let turn = world.run().sealed().expect("the turn ends");
        assert_eq!(turn.answer_calls(), 3, "crash at {at}:\n{}", world.transcript());
    }
}
