//! Echoes: kept with the piece they came with, never shown, and not an answer by themselves.

use everturn_kernel::{Arguments, FinishReason, Input, Settings, StreamEvent, ToolCall};
use everturn_wire::{Category, Chunk, EventBody, Failure, Value};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Fact, Script, World,
    beat::{call, echo, echoes, failed, finish, network_failure, overloaded, says, text, thought},
    play,
};

/// Returns a call with an echo.
fn echoed_call(id: &str) -> Beat {
    let arguments = Arguments::Parsed(Value::Null);
    let (id, name) = (id.into(), "read".into());
    Beat::Say(StreamEvent::ToolCall(ToolCall { id, name, arguments, echo: Some(echo("call")) }))
}

#[test]
fn an_echo_closes_its_reasoning_and_is_kept_with_it() {
    let answer = vec![
        thought("hm, "),
        thought("yes"),
        echoes("one"),
        thought("but"),
        echoes("two"),
        echoes("hidden"),
        text("Hello"),
        echoes("late"),
        echoed_call("a"),
        finish(FinishReason::ToolCalls),
    ];
    assert_snapshot!(play(&Script { steps: vec![vec![answer], vec![says("Bye")]], ..Script::default() }), @r#"
     0 | User text text="Hi"
     0 user-message text="Hi"
     0 turn-start
     0 > call 0.0
     0 reasoning-delta delta="hm, "
     0 reasoning-delta delta="yes"
     0 reasoning-delta delta="but"
     0 text-delta delta="Hello"
     0 tool-call input=null toolCallId="a" toolName="read"
     0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
     0 | Assistant thinking echo={"data":"one","origin":"api host"} text="hm, yes"
     0 | Assistant thinking echo={"data":"two","origin":"api host"} text="but"
     0 | Assistant thinking echo={"data":"hidden","origin":"api host"} text=""
     0 | Assistant text text="Hello"
     0 | Assistant thinking echo={"data":"late","origin":"api host"} text=""
     0 | Assistant tool-call echo={"data":"call","origin":"api host"} input=null toolCallId="a" toolName="read"
     0 > run read 0/a
    10 tool-result content="42" durationMs=10 isError=false toolCallId="a" toolName="read"
    10 | Tool tool-result content="42" isError=false toolCallId="a" toolName="read"
    10 > call 1.0
    10 text-delta delta="Bye"
    10 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    10 | Assistant text text="Bye"
    10 done durationMs=10 firstTokenMs=0 reason="stop"
    10 turn-sealed
    "#);
}

#[test]
fn a_failure_after_only_an_echo_is_retried() {
    let hidden = vec![echoes("old"), failed(network_failure("HTTP 502"))];
    let answer = vec![thought("hm"), echoes("new"), text("Hello"), finish(FinishReason::Stop)];
    let mut world = World::new(Script { steps: vec![vec![hidden, answer]], ..Script::default() });
    world.begin().sealed().expect("the turn ends");
    assert_eq!(world.log().sleeps().len(), 1, "it is retried");
    assert_eq!(kept(&world), [("hm".to_owned(), Some("new".into()))]);
}

#[test]
fn an_answer_of_only_an_echo_is_empty() {
    let empty = vec![echoes("old"), finish(FinishReason::Stop)];
    let mut world = World::new(Script { steps: vec![vec![empty, says("Hello")]], ..Script::default() });
    world.begin().sealed().expect("the turn ends");
    assert_eq!((world.log().sleeps().len(), kept(&world)), (1, vec![]), "it is retried, without it");

    let empty = vec![echoes("old"), finish(FinishReason::Stop)];
    let mut world = World::new(Script { steps: vec![vec![empty]], schedule: None, ..Script::default() });
    let turn = world.begin().sealed().expect("the turn ends");
    let failure = turn.outcome().and_then(|outcome| outcome.failure.clone()).expect("it fails");
    assert_eq!((failure.category, kept(&world)), (Category::InvalidResponse, vec![]));
}

#[test]
fn an_echo_is_not_the_first_token() {
    let answer = vec![echoes("hidden"), Beat::Wait(70), text("Hello"), finish(FinishReason::Stop)];
    let mut world = World::new(Script { steps: vec![vec![overloaded(), answer]], ..Script::default() });
    world.begin().sealed().expect("the turn ends");
    let ttft = world.log().pick(|fact| match fact {
        Fact::Told(EventBody::StepComplete { ttft_ms, .. }) => Some(*ttft_ms),
        _ => None,
    });
    assert_eq!(ttft, [Some(70)]);
}

/// A provider accepts reasoning only together with what followed it.
#[test]
fn reasoning_that_led_to_nothing_loses_its_echo() {
    let speaks = vec![thought("a"), echoes("a"), text("Hel"), thought("b"), echoes("b"), echoes("hidden")];
    let breaks = [speaks.clone(), vec![call("c", "read"), failed(Failure::new(Category::Auth, false, "no"))]];
    let stopped = [speaks, vec![Beat::Hang]].concat();
    for (answer, outside) in [(breaks.concat(), vec![]), (stopped, vec![(50, Input::Abort)])] {
        let mut world = World::new(Script { steps: vec![vec![answer]], outside, ..Script::default() });
        world.begin().sealed().expect("the turn ends");
        assert_eq!(kept(&world), [("a".to_owned(), Some("a".into())), ("b".to_owned(), None)]);
    }
}

#[test]
fn reasoning_that_led_to_a_call_that_ran_keeps_its_echo() {
    let breaks = vec![
        thought("a"),
        echoes("a"),
        call("c", "read"),
        Beat::Wait(50),
        failed(network_failure("HTTP 502")),
    ];
    let settings = Settings { eager_tools: true, ..Settings::default() };
    let mut world = World::new(Script { settings, steps: vec![vec![breaks]], ..Script::default() });
    world.begin().sealed().expect("the turn ends");
    assert_eq!(kept(&world), [("a".to_owned(), Some("a".into()))]);
}

fn here(id: &str) -> Beat {
    Beat::Say(StreamEvent::CallHere(id.into()))
}

/// A provider accepts signed reasoning only where it came, also with calls that are yielded at the end or run at once.
#[test]
fn reasoning_between_two_calls_keeps_its_place() {
    let (one, two) = ([thought("1"), echoes("1")], [thought("2"), echoes("2")]);
    let end = finish(FinishReason::ToolCalls);
    let late = [&one[..], &[here("a")], &two, &[call("a", "read"), call("b", "read"), end.clone()]].concat();
    let eager = [&one[..], &[call("a", "read"), here("a")], &two, &[call("b", "read"), end]].concat();
    for (eager_tools, answer) in [(false, late), (true, eager)] {
        let settings = Settings { eager_tools, ..Settings::default() };
        let mut world = World::new(Script {
            settings,
            steps: vec![vec![answer], vec![says("Bye")]],
            ..Script::default()
        });
        world.begin().sealed().expect("the turn ends");
        let history = world.log().history();
        let kinds = history.iter().filter_map(|(_, chunk)| match chunk {
            Chunk::Thinking { text, .. } => Some(format!("thinks {text}")),
            Chunk::ToolCall { tool_call_id, .. } => Some(format!("calls {tool_call_id}")),
            _ => None,
        });
        assert_eq!(kinds.collect::<Vec<_>>(), ["thinks 1", "calls a", "thinks 2", "calls b"]);
    }
}

/// What was said after a call is not joined with what was said before it.
#[test]
fn text_and_unsigned_reasoning_after_a_call_stay_after_it() {
    let answer = vec![
        thought("hm"),
        here("a"),
        thought("well"),
        text("So"),
        here("b"),
        text("then"),
        echoes("late"),
        call("a", "read"),
        call("b", "read"),
        finish(FinishReason::ToolCalls),
    ];
    let mut world = World::new(Script { steps: vec![vec![answer], vec![says("Bye")]], ..Script::default() });
    world.begin().sealed().expect("the turn ends");
    let kinds = world.log().history().into_iter().filter_map(|(_, chunk)| match chunk {
        Chunk::Thinking { text, echo } => Some(format!("{text}{}", if echo.is_some() { "!" } else { "" })),
        Chunk::ToolCall { tool_call_id, .. } => Some(tool_call_id),
        Chunk::Text { text } => Some(text),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>()[1..8], ["hm", "a", "well", "So", "b", "then", "!"]);
}

/// Returns the kept reasoning: its text and its echo.
fn kept(world: &World) -> Vec<(String, Option<Value>)> {
    let history = world.log().history().into_iter();
    let thoughts = history.filter_map(|(_, chunk)| match chunk {
        Chunk::Thinking { text, echo } => Some((text, echo.map(|echo| echo.data))),
        _ => None,
    });
    thoughts.collect()
}
