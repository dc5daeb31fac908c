//! Waits: ended early, endless, skipped, cancelled.

use std::task::{Context, Poll};

use async_trait::async_trait;
use everturn_kernel::{
    Effects, Ended, Host, Input, Millis, Op, Prompt, Settings, StreamEvent, ToolAnswer, ToolCall, Turn, Want,
    run_turn,
};
use everturn_testkit::{
    Beat, Clock, Crashed, Delays, FakeSleep, Log, Nap, Run, START, Script, ScriptedHost, World,
    beat::{overloaded, says, text},
    play,
};
use everturn_wire::TurnId;
use futures_util::{future::BoxFuture, stream::BoxStream};
use insta::assert_snapshot;

fn overloaded_thrice() -> Script {
    Script { steps: vec![vec![overloaded(), overloaded(), overloaded(), says("Hello")]], ..Script::default() }
}

#[test]
fn a_stop_in_the_second_wait_is_no_error() {
    let script = Script { outside: vec![(6_000, Input::Abort)], ..overloaded_thrice() };
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
    6000 > abort
    6000 retry-ended attempts=1 outcome="cancelled"
    6000 done durationMs=6000 reason="aborted"
    6000 turn-sealed
    "#);
}

#[test]
fn cancelling_the_retry_seals_and_says_so() {
    let script = Script { outside: vec![(6_000, Input::AbortRetry)], ..overloaded_thrice() };
    let transcript = play(&script);
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("> abort retry")).collect();
    assert_snapshot!(end.join("\n"), @r#"
    6000 > abort retry
    6000 retry-ended attempts=1 message="Retry cancelled" outcome="cancelled"
    6000 done durationMs=6000 reason="aborted"
    6000 turn-sealed
    "#);
}

#[test]
fn a_turn_replaced_by_another_one_says_so() {
    let script = Script { outside: vec![(6_000, Input::MoveAway)], ..overloaded_thrice() };
    let transcript = play(&script);
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("> move away")).collect();
    assert_snapshot!(end.join("\n"), @r#"
    6000 > move away
    6000 retry-ended attempts=1 message="Moved to another model by a person" outcome="cancelled"
    6000 done durationMs=6000 reason="aborted"
    6000 turn-sealed
    "#);
}

#[test]
fn cancelling_has_no_effect_without_a_retry() {
    let speaks = vec![text("Hel"), Beat::Wait(10), text("lo"), Beat::Say(finished())];
    let calm = Script { steps: vec![vec![speaks]], ..Script::default() };
    let asked = Script {
        outside: vec![(5, Input::AbortRetry), (6, Input::RetryNow), (7, Input::MoveAway)],
        ..calm.clone()
    };
    let transcript: String = play(&asked)
        .lines()
        .filter(|line| {
            !["> abort retry", "> retry now", "> move away"].iter().any(|said| line.contains(said))
        })
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(transcript, play(&calm));
}

#[test]
fn a_wait_is_skipped_on_demand() {
    let script = Script { outside: vec![(1_000, Input::RetryNow)], nap: Nap::Endless, ..Script::default() };
    let script = Script { steps: vec![vec![overloaded(), says("Hello")]], ..script };
    let transcript = play(&script);
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("> sleep")).collect();
    assert_snapshot!(end.join("\n"), @r#"
       0 > sleep 5000
    1000 > retry now
    1000 status retry=asking/0 status="active"
    1000 > call 0.1
    1000 retry-ended attempts=1 outcome="recovered"
    1000 text-delta delta="Hello"
    1000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    1000 | Assistant text text="Hello"
    1000 done durationMs=1000 firstTokenMs=1000 reason="stop"
    1000 turn-sealed
    "#);
}

#[test]
fn a_sleep_that_ends_early_is_resumed_for_the_rest() {
    let script =
        Script { steps: vec![vec![overloaded(), says("Hello")]], nap: Nap::Half, ..Script::default() };
    let mut world = World::new(script);
    world.begin().sealed().expect("the turn ends");
    assert_eq!(world.log().sleeps(), [5000, 2500, 1250, 625, 312, 156, 78, 39, 19, 9, 4, 2, 1]);
    let transcript = world.log().transcript();
    assert!(transcript.contains(" 5000 > call 0.1"), "{transcript}");
}

#[test]
fn a_sleep_that_never_ends_does_not_stop_a_stop() {
    let script = Script { outside: vec![(9_999, Input::Abort)], nap: Nap::Endless, ..overloaded_thrice() };
    let transcript = play(&script);
    assert!(transcript.contains(" 9999 done durationMs=9999 reason=\"aborted\""), "{transcript}");
}

#[test]
fn without_a_command_an_endless_sleep_does_not_end() {
    let transcript = play(&Script { nap: Nap::Endless, ..overloaded_thrice() });
    assert!(transcript.ends_with("> sleep 5000\n(deadlock: every task waits)\n"), "{transcript}");
}

#[test]
fn a_host_that_parks_is_left_with_a_saved_turn_and_may_come_back_at_any_time() {
    let mut world = World::new(Script { parks: true, ..overloaded_thrice() });
    let Run::Left(turn, want) = world.begin() else { panic!("it is parked") };
    assert_eq!(want, Want::Wake(Op { step: 0, attempt: 1 }, START.plus(5_000)));
    assert_eq!(turn.want(), want);
    assert_eq!((turn.outcome(), turn.retry().map(|retry| retry.attempt)), (None, Some(0)));
    assert_eq!(world.saved(), Some(turn.snapshot()), "what is left is what was saved");
    assert!(world.log().sleeps().is_empty());

    world.clock().set(START.plus(4_999));
    let early = world.recover().turn().expect("it is parked again");
    assert_eq!((early.want(), world.log().calls().len()), (turn.want(), 1));

    for due in [5_000, 15_000, 45_000] {
        world.clock().set(START.plus(due));
        let turn = world.recover().turn().expect("it is parked again, or ends");
        assert_eq!(turn.outcome().is_some(), due == 45_000);
        assert_eq!(turn.retry().is_some(), due != 45_000);
    }
    assert_eq!((world.log().calls().len(), world.log().sleeps()), (4, vec![0; 3]));
}

/// A host that uses the default of `leaves`.
struct Plain(ScriptedHost);

#[async_trait]
impl Host for Plain {
    type Error = Crashed;

    fn now(&self) -> Millis {
        self.0.now()
    }

    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Crashed> {
        self.0.commit(turn, effects).await
    }

    fn tell(&mut self, turn: &Turn, effects: &mut Effects) {
        self.0.tell(turn, effects);
    }

    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.0.stream(turn, op)
    }

    fn run_tool(&mut self, turn: &Turn, step: u32, call: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        self.0.run_tool(turn, step, call)
    }

    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        self.0.poll_inbox(cx)
    }
}

#[test]
fn no_turn_is_left_unless_the_host_says_so() {
    let (clock, log) = (Clock::new(START), Log::new(START));
    let mut host = Plain(ScriptedHost::new(overloaded_thrice(), clock.clone(), log.clone()));
    let retry = FakeSleep::new(Delays::patient(), clock.clone());
    let mut effects = Effects::new();
    let id = TurnId::from("t");
    let mut turn = Turn::begin(id, Settings::default(), Prompt::default(), START, &mut effects);
    let ended = clock.run(run_turn(&mut turn, &mut effects, &mut host, Some(&retry)));
    assert_eq!((ended, clock.now()), (Some(Ok(Ended::Sealed)), START.plus(45_000)));
}

#[test]
fn a_driver_that_is_dropped_in_the_wait_leaves_the_wait_saved() {
    let mut world = World::new(Script { nap: Nap::Endless, ..overloaded_thrice() });
    assert!(matches!(world.begin(), Run::Stuck), "it waits");
    let saved = serde_json::to_value(world.saved().expect("it was saved")).expect("JSON");
    assert_eq!(saved["phase"]["state"], "backoff");
    assert_eq!(saved["phase"]["decidedMs"], 5000);
}

fn finished() -> everturn_kernel::StreamEvent {
    everturn_kernel::StreamEvent::Finished(everturn_kernel::FinishReason::Stop)
}
