//! How often a turn is recovered, and what is published about it.

use everturn_kernel::{Effect, Effects, FinishReason, Input, Op, Settings, StreamEvent, Turn};
use everturn_wire::{Category, Chunk, Failure, Usage};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Delays, Run, START, Script, Tool, World,
    beat::{call, finish, overloaded, says, text, thought, usage},
};

/// Ends the process each time the run first reaches `mark`.
fn crash_always(script: Script, mark: &str) -> (World, u32) {
    let mut world = World::new(script);
    let mut turn = world.begin().sealed();
    let mut restarts = 0;
    while turn.is_none() {
        assert!(world.log().transcript().contains(mark), "the run reaches the mark");
        restarts += 1;
        assert!(restarts < 100, "the turn is recovered for ever");
        turn = world.recover().sealed();
    }
    (world, restarts)
}

#[test]
fn a_step_that_always_ends_the_process_is_given_up() {
    let mut script = Script { steps: vec![vec![vec![text("Hel"), Beat::Hang]]], ..Script::default() };
    script.settings.max_recoveries = 3;
    let (world, restarts) = crash_always(script, "text-delta");
    assert_eq!((restarts, world.log().calls().len()), (4, 4));
    let transcript = world.log().transcript();
    let end: Vec<_> = transcript.lines().skip(transcript.lines().count() - 7).collect();
    assert_snapshot!(end.join("\n"), @r#"
    0 > restart
    0 step-rewound reason="the server restarted while this step was streaming"
    0 | Assistant error category="internal" message="the process ended or could not save 4 times while this step ran; the turn was given up"
    0 error category="internal" message="the process ended or could not save 4 times while this step ran; the turn was given up"
    0 step-complete
    0 done durationMs=0 reason="error"
    0 turn-sealed
    "#);
}

#[test]
fn a_tool_that_always_ends_the_process_is_given_up_even_if_it_may_run_again() {
    let asks = vec![call("a", "bomb"), finish(FinishReason::ToolCalls)];
    let bomb = Tool::hanging("bomb");
    let settings =
        Settings { max_recoveries: 2, idempotent_tools: vec!["bomb".into()], ..Settings::default() };
    let script = Script { settings, tools: vec![bomb], steps: vec![vec![asks]], ..Script::default() };
    let (world, restarts) = crash_always(script, "> run bomb");
    assert_eq!(restarts, 3);
    assert_eq!(world.log().transcript().matches("> run bomb").count(), 3);
}

/// Three steps, each of which ends the process once or twice. Recoveries are counted per step.
#[test]
fn recoveries_are_counted_for_each_step() {
    let asks = |id| vec![call(id, "bomb"), finish(FinishReason::ToolCalls)];
    let bomb = Tool::hanging("bomb");
    let settings = Settings { max_recoveries: 1, ..Settings::default() };
    let steps = vec![vec![asks("a")], vec![asks("b")], vec![says("Done")]];
    let script = Script { settings, tools: vec![bomb], steps, ..Script::default() };
    let (world, restarts) = crash_always(script, "> run bomb");
    assert_eq!(restarts, 2);
    assert!(world.log().transcript().contains("reason=\"stop\""), "{}", world.log().transcript());
}

#[test]
fn crashes_between_retries_count() {
    let mut script = Script { steps: vec![vec![overloaded(), vec![Beat::Hang]]], ..Script::default() };
    script.settings.max_recoveries = 1;
    let (world, restarts) = crash_always(script, "> call 0.1");
    assert_eq!(restarts, 2);
    let transcript = world.log().transcript();
    assert!(
        transcript.contains("retry-ended attempts=1 message=\"the process ended or could not save 2 times"),
        "{transcript}"
    );
}

#[test]
fn an_interrupted_call_gets_a_failed_result_and_the_others_run() {
    let asks = vec![call("a", "bomb"), call("b", "read"), finish(FinishReason::ToolCalls)];
    let bomb = Tool::hanging("bomb");
    let mut script = Script { steps: vec![vec![asks], vec![says("Done")]], ..Script::default() };
    script.tools.push(bomb);
    script.settings.max_parallel_tools = 1;
    let (world, restarts) = crash_always(script, "> run bomb");
    assert_eq!(restarts, 1);
    let transcript = world.log().transcript();
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("> run bomb")).collect();
    assert_snapshot!(end.join("\n"), @r#"
     0 > run bomb 0/a
     0 > restart
     0 tool-result content="(tool failed: interrupted by a restart; it is not known whether it took effect, so it was not run again)" durationMs=0 isError=true toolCallId="a" toolName="bomb"
     0 | Tool tool-result content="(tool failed: interrupted by a restart; it is not known whether it took effect, so it was not run again)" isError=true toolCallId="a" toolName="bomb"
     0 > run read 0/b
    10 tool-result content="42" durationMs=10 isError=false toolCallId="b" toolName="read"
    10 | Tool tool-result content="42" isError=false toolCallId="b" toolName="read"
    10 > call 1.0
    10 text-delta delta="Done"
    10 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    10 | Assistant text text="Done"
    10 done durationMs=10 firstTokenMs=0 reason="stop"
    10 turn-sealed
    "#);
}

#[test]
fn eager_tools_that_ran_do_not_run_again() {
    let asks = vec![text("See:"), call("a", "read"), Beat::Wait(20), text(" and"), Beat::Hang];
    let mut script = Script { steps: vec![vec![asks], vec![says("Done")]], ..Script::default() };
    script.settings.eager_tools = true;
    let (world, restarts) = crash_always(script, "delta=\" and\"");
    assert_eq!(restarts, 1);
    let transcript = world.log().transcript();
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("step-rewound")).collect();
    assert_snapshot!(end.join("\n"), @r#"
    20 step-rewound reason="the server restarted while this step was streaming"
    20 text-delta delta="See:"
    20 tool-call again=true input={"n":1} toolCallId="a" toolName="read"
    20 tool-result again=true content="42" isError=false toolCallId="a" toolName="read"
    20 step-complete decodeMs=20 genTotalMs=20 ttftMs=0
    20 | Assistant text text="See:"
    20 | Assistant tool-call input={"n":1} toolCallId="a" toolName="read"
    20 | Tool tool-result content="42" isError=false toolCallId="a" toolName="read"
    20 > call 1.0
    20 text-delta delta="Done"
    20 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    20 | Assistant text text="Done"
    20 done durationMs=20 firstTokenMs=0 reason="stop"
    20 turn-sealed
    "#);
}

/// An orderly shutdown in the middle of every attempt, far more often than crashes are tolerated.
#[test]
fn a_step_is_never_given_up_because_of_orderly_shutdowns() {
    let mut script = Script { steps: vec![vec![vec![text("Hel"), Beat::Hang]]], ..Script::default() };
    script.settings.max_recoveries = 1;
    let mut world = World::new(script);
    for restart in 0..10 {
        world.say_in(5, Input::Checkpoint);
        let run = if restart == 0 { world.begin() } else { world.recover() };
        assert!(matches!(run, Run::Stuck), "it hangs after {restart} restarts");
        let saved = serde_json::to_string(&world.saved().expect("it was saved")).expect("a snapshot is JSON");
        assert!(saved.contains(r#""text":"Hel""#), "what was streamed is saved: {saved}");
    }
    let transcript = world.log().transcript();
    assert!(!transcript.contains("error") && transcript.matches("step-rewound").count() == 9, "{transcript}");
}

/// Returns what the turn keeps and uses if its step was shown, saved by an orderly shutdown and asked again, and then this
/// happens.
fn after_restart(then: impl IntoIterator<Item = Input>) -> (Vec<Chunk>, Option<Usage>) {
    let speaks = vec![thought("Hm."), text("Hel"), usage(10, 2), Beat::Hang];
    let mut world = World::new(Script::one_step([speaks]));
    world.say_in(5, Input::Checkpoint);
    assert!(matches!(world.begin(), Run::Stuck), "it hangs");
    let mut turn = Turn::restore(world.saved().expect("it was saved")).expect("it is restored");
    let (schedule, mut fx) = (Delays::patient(), Effects::new());
    for input in [Input::Recover].into_iter().chain(then) {
        turn.handle(START, input, &schedule, &mut fx);
        // It may be saved and restored at any time.
        turn = Turn::restore(turn.snapshot()).expect("it is restored");
    }
    assert!(turn.outcome().is_some(), "the turn ends");
    let kept = |effect| match effect {
        Effect::Keep(_, chunk) if !matches!(chunk, Chunk::Error(_)) => Some(chunk),
        _ => None,
    };
    (fx.drain().filter_map(kept).collect(), turn.usage())
}

#[test]
fn what_a_restart_withdrew_is_kept_if_nothing_replaces_it() {
    let says = |event| Input::Provider(Op { step: 0, attempt: 1 }, event);
    let fails = |category, retryable| says(StreamEvent::Failed(Failure::new(category, retryable, "no")));
    let shown = |text: &str| Chunk::Text { text: text.into() };
    let used = Some(Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() });
    let whole = (vec![Chunk::Thinking { text: "Hm.".into(), echo: None }, shown("Hel")], used);
    assert_eq!(after_restart([Input::Abort]), whole);
    assert_eq!(after_restart([fails(Category::Auth, false)]), whole);
    assert_eq!(after_restart([fails(Category::Overloaded, true), Input::Abort]), whole);
    let replaced = after_restart([says(StreamEvent::Text("Ha".into())), Input::Abort]);
    assert_eq!(replaced, (vec![shown("Ha")], used));
}
