//! Messages sent while a turn runs.

use everturn_kernel::{FinishReason, Input};
use everturn_wire::QueuedMessage;
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Script, World,
    beat::{call, finish, says, text},
    play,
};

fn steer(id: &str, text: &str) -> Input {
    Input::Steer(QueuedMessage { message_id: id.into(), text: text.into() })
}

fn asks_then_answers(outside: Vec<(u64, Input)>) -> Script {
    let asks = vec![Beat::Wait(5), call("a", "read"), finish(FinishReason::ToolCalls)];
    Script { steps: vec![vec![asks], vec![says("Done")]], outside, ..Script::default() }
}

#[test]
fn messages_are_injected_after_the_results_in_the_order_they_came() {
    let script = asks_then_answers(vec![(1, steer("m1", "and quickly")), (8, steer("m2", "please"))]);
    assert_snapshot!(play(&script), @r#"
     0 | User text text="Hi"
     0 user-message text="Hi"
     0 turn-start
     0 > call 0.0
     1 > steer
     1 queue-changed queue=[{"messageId":"m1","text":"and quickly"}]
     5 tool-call input={"n":1} toolCallId="a" toolName="read"
     5 step-complete decodeMs=0 genTotalMs=5 ttftMs=5
     5 | Assistant tool-call input={"n":1} toolCallId="a" toolName="read"
     5 > run read 0/a
     8 > steer
     8 queue-changed queue=[{"messageId":"m1","text":"and quickly"},{"messageId":"m2","text":"please"}]
    15 tool-result content="42" durationMs=10 isError=false toolCallId="a" toolName="read"
    15 | Tool tool-result content="42" isError=false toolCallId="a" toolName="read"
    15 queue-changed queue=[]
    15 | User text text="and quickly"
    15 steering text="and quickly"
    15 | User text text="please"
    15 steering text="please"
    15 > call 1.0
    15 text-delta delta="Done"
    15 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    15 | Assistant text text="Done"
    15 done durationMs=15 firstTokenMs=5 reason="stop"
    15 turn-sealed
    "#);
}

#[test]
fn a_message_can_be_taken_back() {
    let unsteer = |id: &str| Input::Unsteer { message_id: id.into() };
    let script = asks_then_answers(vec![
        (1, steer("m1", "no")),
        (2, steer("m2", "yes")),
        (3, unsteer("m1")),
        (4, unsteer("m1")),
    ]);
    let transcript = play(&script);
    let told: Vec<_> = transcript
        .lines()
        .filter(|line| line.contains("queue-changed") || line.contains("steering"))
        .collect();
    assert_snapshot!(told.join("\n"), @r#"
        1 queue-changed queue=[{"messageId":"m1","text":"no"}]
        2 queue-changed queue=[{"messageId":"m1","text":"no"},{"messageId":"m2","text":"yes"}]
        3 queue-changed queue=[{"messageId":"m2","text":"yes"}]
       15 queue-changed queue=[]
       15 steering text="yes"
    "#);
}

#[test]
fn the_same_message_is_queued_once_and_an_empty_one_not_at_all() {
    let script = asks_then_answers(vec![(1, steer("m", "go")), (2, steer("m", "go")), (3, steer("n", ""))]);
    let transcript = play(&script);
    assert_eq!(transcript.matches(" steering ").count(), 1, "{transcript}");
    assert_eq!(transcript.matches("queue-changed").count(), 2, "{transcript}");
}

#[test]
fn a_message_that_comes_too_late_stays_for_the_next_turn() {
    let mut world = World::new(Script {
        steps: vec![vec![vec![Beat::Wait(10), text("Done"), finish(FinishReason::Stop)]]],
        outside: vec![(5, steer("m", "one more"))],
        ..Script::default()
    });
    let turn = world.begin().sealed().expect("the turn ends");
    assert_eq!(turn.queue(), [QueuedMessage { message_id: "m".into(), text: "one more".into() }]);
    assert_eq!(turn.snapshot().queue(), turn.queue());
    assert_eq!(world.log().history().len(), 2, "prompt and answer");
}
