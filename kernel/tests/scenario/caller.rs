//! Calls that the caller runs.

use everturn_kernel::{Approval, Arguments, Check, FinishReason, Input, StreamEvent, ToolAnswer, ToolCall};
use everturn_testkit::{
    Beat, Fact, Person, Script, Tool, World,
    beat::{call, finish, says},
    play,
};
use everturn_wire::{CallerCall, EventBody};
use insta::assert_snapshot;

/// Returns a script in which the model makes these calls. `weather` is for the caller, and `write` needs approval.
fn script_of(calls: Vec<Beat>) -> Script {
    let checks =
        [("weather".to_owned(), Check::Caller), ("write".into(), Check::Person(Approval::default()))];
    let calls = calls.into_iter().chain([finish(FinishReason::ToolCalls)]).collect();
    Script {
        steps: vec![vec![calls], vec![says("Done")]],
        tools: ["read", "write", "weather"].map(|name| Tool::new(name, 10, ToolAnswer::ok("ok"))).to_vec(),
        checks: checks.to_vec(),
        ..Script::default()
    }
}

fn handed(world: &World) -> Vec<CallerCall> {
    let of = |fact: &Fact| match fact {
        Fact::Told(EventBody::Done { calls, .. }) => Some(calls.clone()),
        _ => None,
    };
    world.log().pick(of).concat()
}

#[test]
fn the_turn_ends_with_the_calls_once_the_others_are_done() {
    assert_snapshot!(play(&script_of(vec![call("w", "weather"), call("r", "read")])), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 tool-call input={"n":1} toolCallId="w" toolName="weather"
        0 tool-call input={"n":1} toolCallId="r" toolName="read"
        0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
        0 | Assistant tool-call input={"n":1} toolCallId="w" toolName="weather"
        0 | Assistant tool-call input={"n":1} toolCallId="r" toolName="read"
        0 > run read 0/r
       10 tool-result content="ok" durationMs=10 isError=false toolCallId="r" toolName="read"
       10 | Tool tool-result content="ok" isError=false toolCallId="r" toolName="read"
       10 tool-result content="(not run here: handed to the caller, who runs it and sends the result with the next request)" isError=false toolCallId="w" toolName="weather"
       10 | Tool tool-result content="(not run here: handed to the caller, who runs it and sends the result with the next request)" isError=false toolCallId="w" toolName="weather"
       10 done calls=[{"input":{"n":1},"toolCallId":"w","toolName":"weather"}] durationMs=10 firstTokenMs=0 reason="tool-calls"
       10 turn-sealed
    "#);
}

#[test]
fn it_waits_for_a_person_first() {
    for parks in [false, true] {
        let person = Some(Person { after_ms: 3_600_000, allows: true });
        let script = script_of(vec![call("w", "weather"), call("x", "write")]);
        let mut world = World::new(Script { person, parks, ..script });
        world.run().sealed().expect("the turn ends");
        world.check();
        let ran = world.log().pick(|fact| match fact {
            Fact::Ran { name, .. } => Some(name.clone()),
            _ => None,
        });
        assert_eq!(ran, ["write"]);
        assert_eq!(handed(&world).len(), 1);
    }
}

#[test]
fn a_call_with_malformed_arguments_is_not_handed_over() {
    let arguments = Arguments::Malformed { raw: "{".into(), reason: "it ends early".into() };
    let malformed = ToolCall { id: "w".into(), name: "weather".into(), arguments, echo: None };
    let mut world = World::new(script_of(vec![Beat::Say(StreamEvent::ToolCall(malformed))]));
    let turn = world.run().sealed().expect("the turn ends");
    world.check();
    assert!(handed(&world).is_empty());
    assert_eq!(turn.steps(), 2, "the model gets the error and is asked again");
}

#[test]
fn a_turn_that_is_stopped_hands_nothing_over() {
    let script = script_of(vec![call("w", "weather"), call("r", "read")]);
    let mut world = World::new(Script { outside: vec![(5, Input::Abort)], ..script });
    world.run().sealed().expect("the turn ends");
    world.check();
    assert!(handed(&world).is_empty());
}
