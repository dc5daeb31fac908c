//! Failures after content that may be withdrawn.

use everturn_kernel::{AfterContent, Budget, FinishReason, Input, Settings};
use everturn_wire::{Category, Failure};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Fact, Script, World,
    beat::{call, failed, finish, network_failure, says, text, thought, usage},
    play,
};

fn settings() -> Settings {
    Settings { after_content: AfterContent::Rewind, ..Settings::default() }
}

fn breaks(what: &str) -> Vec<Beat> {
    vec![text(what), failed(network_failure("connection reset"))]
}

/// Returns a script of one step whose shown text may be withdrawn.
fn script(attempts: impl Into<Vec<Vec<Beat>>>) -> Script {
    Script { settings: settings(), ..Script::one_step(attempts) }
}

#[test]
fn a_broken_answer_is_withdrawn_and_streamed_again() {
    let broken = vec![thought("Hm."), text("Hel"), usage(10, 2), failed(network_failure("connection reset"))];
    assert_snapshot!(play(&script([broken, says("Hello")])), @r#"
       0 | User text text="Hi"
       0 user-message text="Hi"
       0 turn-start
       0 > call 0.0
       0 reasoning-delta delta="Hm."
       0 text-delta delta="Hel"
       0 usage usage={"inputTokens":10,"outputTokens":2}
       0 step-rewound reason="connection reset"
       0 provider-retry attempt=0 category="network" delayMs=5000 maxAttempts=21 message="connection reset"
       0 > sleep 5000
    5000 status retry=asking/0 status="active"
    5000 > call 0.1
    5000 retry-ended attempts=1 outcome="recovered"
    5000 text-delta delta="Hello"
    5000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    5000 | Assistant text text="Hello"
    5000 done durationMs=5000 firstTokenMs=0 reason="stop" usage={"inputTokens":10,"outputTokens":2}
    5000 turn-sealed
    "#);
}

#[test]
fn an_answer_that_keeps_breaking_ends_with_its_last_part() {
    let script = Script { schedule: Some(everturn_testkit::Delays::new([1_000])), ..script([breaks("Hel")]) };
    assert_snapshot!(play(&script), @r#"
       0 | User text text="Hi"
       0 user-message text="Hi"
       0 turn-start
       0 > call 0.0
       0 text-delta delta="Hel"
       0 step-rewound reason="connection reset"
       0 provider-retry attempt=0 category="network" delayMs=1000 maxAttempts=1 message="connection reset"
       0 > sleep 1000
    1000 status retry=asking/0 status="active"
    1000 > call 0.1
    1000 retry-ended attempts=1 outcome="recovered"
    1000 text-delta delta="Hel"
    1000 | Assistant text text="Hel"
    1000 | Assistant error category="network" message="connection reset" outcome="exhausted" retries=1 waitedMs=1000
    1000 error category="network" message="connection reset" outcome="exhausted" retries=1 waitedMs=1000
    1000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    1000 done durationMs=1000 firstTokenMs=0 reason="error"
    1000 turn-sealed
    "#);
}

#[test]
fn nothing_is_withdrawn_if_the_failure_is_not_retried() {
    let policy = Failure::new(Category::ContentPolicy, false, "HTTP 400: refused");
    let refused = script([vec![text("Hel"), failed(policy)]]);
    assert!(!play(&refused).contains("step-rewound"));
    let budget = Budget { max_wait_ms: Some(4_999), ..Budget::default() };
    let poor = Script { settings: Settings { budget, ..settings() }, ..script([breaks("Hel")]) };
    let transcript = play(&poor);
    assert!(!transcript.contains("step-rewound"), "{transcript}");
    assert!(transcript.contains(r#"| Assistant text text="Hel""#), "{transcript}");
}

#[test]
fn a_step_whose_tool_has_started_is_not_withdrawn() {
    let broken = vec![text("Let me"), call("a", "read"), failed(network_failure("connection reset"))];
    let eager = Script {
        settings: Settings { eager_tools: true, ..settings() },
        ..script([broken.clone(), says("Hello")])
    };
    let transcript = play(&eager);
    assert!(!transcript.contains("step-rewound") && transcript.contains("done"), "{transcript}");
    // The same call, not started yet.
    let asks = vec![text("Let me"), call("a", "read"), finish(FinishReason::ToolCalls)];
    let idle = Script {
        steps: vec![vec![broken, asks], vec![says("42")]],
        settings: settings(),
        ..Script::default()
    };
    let transcript = play(&idle);
    assert_eq!(transcript.matches("step-rewound").count(), 1, "{transcript}");
    assert_eq!(transcript.matches("> run read").count(), 1, "{transcript}");
}

#[test]
fn a_stop_in_the_wait_keeps_what_was_withdrawn() {
    let broken =
        vec![thought("Hm."), text("Hel"), call("a", "read"), failed(network_failure("connection reset"))];
    let script = Script { outside: vec![(1_000, Input::Abort)], ..script([broken, says("Hello")]) };
    assert_snapshot!(play(&script), @r#"
       0 | User text text="Hi"
       0 user-message text="Hi"
       0 turn-start
       0 > call 0.0
       0 reasoning-delta delta="Hm."
       0 text-delta delta="Hel"
       0 tool-call input={"n":1} toolCallId="a" toolName="read"
       0 tool-result content="(tool failed: not run, the answer broke off and starts again)" isError=true toolCallId="a" toolName="read"
       0 step-rewound reason="connection reset"
       0 provider-retry attempt=0 category="network" delayMs=5000 maxAttempts=21 message="connection reset"
       0 > sleep 5000
    1000 > abort
    1000 retry-ended attempts=0 outcome="cancelled"
    1000 reasoning-delta delta="Hm."
    1000 | Assistant thinking text="Hm."
    1000 text-delta delta="Hel"
    1000 | Assistant text text="Hel"
    1000 done durationMs=1000 firstTokenMs=0 reason="aborted"
    1000 turn-sealed
    "#);
}

/// Returns the kept parts of the answer.
fn kept(script: &Script) -> Vec<String> {
    let transcript = play(script);
    transcript.lines().filter_map(|line| Some(line.split_once("| Assistant ")?.1.to_owned())).collect()
}

#[test]
fn what_was_last_withdrawn_is_kept_if_nothing_replaces_it() {
    let hel = r#"text text="Hel""#;
    let once = || Some(everturn_testkit::Delays::new([1_000, 1_000]));
    let refused = || vec![failed(Failure::new(Category::Auth, false, "HTTP 401"))];
    // A later call fails before it shows anything.
    let given_up = Script { schedule: once(), ..script([breaks("Hel"), refused()]) };
    assert_eq!(kept(&given_up)[0], hel);
    let at_last = Script { schedule: once(), ..script([breaks("H"), breaks("Hel"), refused()]) };
    assert_eq!(
        kept(&at_last)[..],
        [hel.to_owned(), kept(&given_up)[1].replace("retries=1 waitedMs=1000", "retries=2 waitedMs=2000")]
    );
    // Something replaced it.
    let replaced =
        Script { schedule: once(), ..script([breaks("Hel"), vec![text("Ha"), refused().remove(0)]]) };
    assert_eq!(kept(&replaced)[0], r#"text text="Ha""#);
    // Another turn replaces it.
    let moved = Script { outside: vec![(100, Input::MoveAway)], ..script([breaks("Hel"), says("Hello")]) };
    assert_eq!(kept(&moved), [""; 0]);
    // The next step is unrelated.
    let asks = vec![text("Let me"), call("a", "read"), finish(FinishReason::ToolCalls)];
    let next = Script {
        steps: vec![vec![breaks("Hel"), asks], vec![refused()]],
        settings: settings(),
        ..Script::default()
    };
    assert_eq!(kept(&next).iter().filter(|line| line.contains("Hel")).count(), 0);
}

#[test]
fn a_crash_at_any_point_ends_the_same() {
    let script = script([breaks("Hel"), breaks("Hell"), says("Hello")]);
    let mut calm = World::new(script.clone());
    calm.run().sealed().expect("the turn ends");
    let beats = calm.log().pick(|fact| matches!(fact, Fact::Saved).then_some(())).len();
    for at in 0..40 {
        let mut world = World::new(script.clone());
        world.crash_at(at);
        world.run().sealed().expect("the turn ends");
        world.check();
        let kept = |world: &World| {
            world.log().pick(|fact| match fact {
                Fact::Kept(_, chunk) => Some(chunk.clone()),
                _ => None,
            })
        };
        assert_eq!(kept(&world), kept(&calm), "crash at {at}");
    }
    assert!(beats > 3);
}

#[test]
fn a_crash_in_the_wait_loses_nothing_that_was_withdrawn() {
    let calm = Script {
        outside: vec![(9_000, Input::Abort)],
        ..script([breaks("Hel"), breaks("Hell"), says("Hello")])
    };
    let end = |at: Option<u32>| {
        let mut world = World::new(calm.clone());
        if let Some(at) = at {
            world.crash_at(at);
        }
        world.run().sealed().expect("the turn ends");
        world.check();
        let kept = |fact: &Fact| match fact {
            Fact::Kept(_, chunk) => Some(chunk.clone()),
            _ => None,
        };
        world.log().pick(kept)
    };
    let usual = end(None);
    assert!(format!("{usual:?}").contains("Hell"), "{usual:?}");
    for at in 0..30 {
        assert_eq!(end(Some(at)), usual, "crash at {at}");
    }
}
