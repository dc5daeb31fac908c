//! Internal faults in each phase.

use everturn_kernel::{FinishReason, Input};
use everturn_wire::{Category, Failure};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Script,
    beat::{call, finish, overloaded, text},
    play,
};

fn broken_at(ms: u64, steps: Vec<Vec<Vec<Beat>>>) -> String {
    let fault = Input::Fault(Failure::new(Category::Internal, false, "a tool panicked"));
    let transcript = play(&Script { steps, outside: vec![(ms, fault)], ..Script::default() });
    transcript.lines().skip_while(|line| !line.contains("> fault")).collect::<Vec<_>>().join("\n")
}

#[test]
fn while_the_answer_streams() {
    let speaks = vec![text("Hel"), Beat::Wait(100), text("lo"), finish(FinishReason::Stop)];
    assert_snapshot!(broken_at(40, vec![vec![speaks]]), @r#"
    40 > fault
    40 | Assistant text text="Hel"
    40 | Assistant error category="internal" message="a tool panicked"
    40 error category="internal" message="a tool panicked"
    40 step-complete decodeMs=40 genTotalMs=40 ttftMs=0
    40 done durationMs=40 firstTokenMs=0 reason="error"
    40 turn-sealed
    "#);
}

#[test]
fn in_a_wait() {
    assert_snapshot!(broken_at(40, vec![vec![overloaded()]]), @r#"
    40 > fault
    40 retry-ended attempts=0 message="a tool panicked" outcome="cancelled"
    40 | Assistant error category="internal" message="a tool panicked"
    40 error category="internal" message="a tool panicked"
    40 step-complete
    40 done durationMs=40 reason="error"
    40 turn-sealed
    "#);
}

#[test]
fn while_tools_run() {
    let asks = vec![call("a", "read"), finish(FinishReason::ToolCalls)];
    assert_snapshot!(broken_at(4, vec![vec![asks]]), @r#"
    4 > fault
    4 tool-result content="(tool failed: interrupted, the turn ended before it was done)" durationMs=4 isError=true toolCallId="a" toolName="read"
    4 | Tool tool-result content="(tool failed: interrupted, the turn ended before it was done)" isError=true toolCallId="a" toolName="read"
    4 | Assistant error category="internal" message="a tool panicked"
    4 error category="internal" message="a tool panicked"
    4 done durationMs=4 firstTokenMs=0 reason="error"
    4 turn-sealed
    "#);
}
