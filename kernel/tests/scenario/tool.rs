//! Tools: in parallel, bounded, each with exactly one result.

use everturn_kernel::{FinishReason, Input, Settings, ToolAnswer};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Fact, START, Script, Tool, World,
    beat::{call, failed, finish, malformed_call, network_failure, says, text},
    play,
};

fn asks(calls: &[(&str, &str)]) -> Vec<Beat> {
    let calls = calls.iter().map(|(id, name)| call(id, name));
    calls.chain([finish(FinishReason::ToolCalls)]).collect()
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("slow", 100, ToolAnswer::ok("slow done")),
        Tool::new("fast", 10, ToolAnswer::ok("fast done")),
        Tool::new("broken", 5, ToolAnswer::error("(tool failed: no such file)")),
    ]
}

fn two_steps(first: Vec<Beat>) -> Script {
    Script { steps: vec![vec![first], vec![says("Done")]], tools: tools(), ..Script::default() }
}

#[test]
fn calls_run_in_parallel_and_each_has_its_result() {
    let first =
        vec![text("Let me see."), call("a", "slow"), call("b", "fast"), finish(FinishReason::ToolCalls)];
    assert_snapshot!(play(&two_steps(first)), @r#"
      0 | User text text="Hi"
      0 user-message text="Hi"
      0 turn-start
      0 > call 0.0
      0 text-delta delta="Let me see."
      0 tool-call input={"n":1} toolCallId="a" toolName="slow"
      0 tool-call input={"n":1} toolCallId="b" toolName="fast"
      0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
      0 | Assistant text text="Let me see."
      0 | Assistant tool-call input={"n":1} toolCallId="a" toolName="slow"
      0 | Assistant tool-call input={"n":1} toolCallId="b" toolName="fast"
      0 > run slow 0/a
      0 > run fast 0/b
     10 tool-result content="fast done" durationMs=10 isError=false toolCallId="b" toolName="fast"
     10 | Tool tool-result content="fast done" isError=false toolCallId="b" toolName="fast"
    100 tool-result content="slow done" durationMs=100 isError=false toolCallId="a" toolName="slow"
    100 | Tool tool-result content="slow done" isError=false toolCallId="a" toolName="slow"
    100 > call 1.0
    100 text-delta delta="Done"
    100 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    100 | Assistant text text="Done"
    100 done durationMs=100 firstTokenMs=0 reason="stop"
    100 turn-sealed
    "#);
}

#[test]
fn no_more_tools_run_than_are_allowed() {
    let ids = ["a", "b", "c", "d", "e"];
    for (allowed, expected) in [(0, 1), (1, 1), (2, 2), (9, 5)] {
        let mut script = two_steps(asks(&ids.map(|id| (id, "slow"))));
        script.settings = Settings { max_parallel_tools: allowed, ..Settings::default() };
        let mut world = World::new(script);
        world.begin().sealed().expect("the turn ends");
        assert_eq!(most_at_once(&world), expected, "of {allowed} allowed");
    }
}

fn most_at_once(world: &World) -> i32 {
    let (mut running, mut most) = (0, 0);
    world.log().each(|_, fact| {
        running += match fact {
            Fact::Ran { .. } => 1,
            Fact::Stopped => -1,
            _ => 0,
        };
        most = most.max(running);
    });
    most
}

#[test]
fn a_tool_that_is_no_longer_wanted_is_stopped() {
    let mut script = two_steps(asks(&[("a", "slow"), ("b", "slow")]));
    script.settings.max_parallel_tools = 1;
    // `Recover` answers the running call. Nothing else may do that while its tool runs.
    script.outside = vec![(50, Input::Recover)];
    let mut world = World::new(script);
    world.begin().sealed().expect("the turn ends");
    assert_eq!(most_at_once(&world), 1);
    assert_eq!(world.clock().now(), START.plus(150));
}

#[test]
fn a_free_slot_is_used_at_once() {
    let mut script = two_steps(asks(&[("a", "slow"), ("b", "fast"), ("c", "fast")]));
    script.settings.max_parallel_tools = 2;
    let transcript = play(&script);
    let runs: Vec<_> = transcript
        .lines()
        .filter(|line| line.contains("> run") || line.contains(" tool-result content=\"fast"))
        .filter(|line| !line.contains('|'))
        .collect();
    assert_snapshot!(runs.join("\n"), @r#"
        0 > run slow 0/a
        0 > run fast 0/b
       10 tool-result content="fast done" durationMs=10 isError=false toolCallId="b" toolName="fast"
       10 > run fast 0/c
       20 tool-result content="fast done" durationMs=10 isError=false toolCallId="c" toolName="fast"
    "#);
}

#[test]
fn unknown_and_failing_tools_are_results_not_failures() {
    let transcript = play(&two_steps(asks(&[("a", "nothing"), ("b", "broken")])));
    let results: Vec<_> =
        transcript.lines().filter(|line| line.contains("| Tool") || line.contains("done ")).collect();
    assert_snapshot!(results.join("\n"), @r#"
    0 | Tool tool-result content="(tool failed: there is no tool \"nothing\")" isError=true toolCallId="a" toolName="nothing"
    5 | Tool tool-result content="(tool failed: no such file)" isError=true toolCallId="b" toolName="broken"
    5 done durationMs=5 firstTokenMs=0 reason="stop"
    "#);
}

#[test]
fn a_call_with_malformed_arguments_is_answered_and_the_others_run() {
    let first = vec![malformed_call("a", "fast"), call("b", "fast"), finish(FinishReason::ToolCalls)];
    assert_snapshot!(play(&two_steps(first)), @r#"
     0 | User text text="Hi"
     0 user-message text="Hi"
     0 turn-start
     0 > call 0.0
     0 tool-call input="{\"n\":" toolCallId="a" toolName="fast"
     0 tool-call input={"n":1} toolCallId="b" toolName="fast"
     0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
     0 | Assistant tool-call input="{\"n\":" toolCallId="a" toolName="fast"
     0 | Assistant tool-call input={"n":1} toolCallId="b" toolName="fast"
     0 tool-result content="(tool failed: the arguments are not valid JSON: it ends early)" isError=true toolCallId="a" toolName="fast"
     0 | Tool tool-result content="(tool failed: the arguments are not valid JSON: it ends early)" isError=true toolCallId="a" toolName="fast"
     0 > run fast 0/b
    10 tool-result content="fast done" durationMs=10 isError=false toolCallId="b" toolName="fast"
    10 | Tool tool-result content="fast done" isError=false toolCallId="b" toolName="fast"
    10 > call 1.0
    10 text-delta delta="Done"
    10 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    10 | Assistant text text="Done"
    10 done durationMs=10 firstTokenMs=0 reason="stop"
    10 turn-sealed
    "#);
}

#[test]
fn only_malformed_calls_lead_straight_to_the_next_step() {
    for eager_tools in [false, true] {
        let mut script = two_steps(vec![malformed_call("a", "fast"), finish(FinishReason::ToolCalls)]);
        script.settings.eager_tools = eager_tools;
        let transcript = play(&script);
        assert!(!transcript.contains("> run") && transcript.contains("> call 1.0"), "{transcript}");
    }
}

#[test]
fn calls_that_share_an_id_or_have_none_are_told_apart() {
    let transcript =
        play(&two_steps(asks(&[("a", "fast"), ("a", "fast"), ("", "fast"), ("", "fast"), ("a", "fast")])));
    let runs: Vec<_> = transcript.lines().filter(|line| line.contains("> run")).collect();
    assert_snapshot!(runs.join("\n"), @r"
        0 > run fast 0/a
        0 > run fast 0/a-2
        0 > run fast 0/call
        0 > run fast 0/call-4
        0 > run fast 0/a-5
    ");
}

#[test]
fn an_id_may_return_in_a_later_step() {
    let mut script = two_steps(asks(&[("a", "fast")]));
    script.steps.insert(1, vec![asks(&[("a", "slow")])]);
    let transcript = play(&script);
    assert!(
        transcript.contains("> run fast 0/a\n") && transcript.contains("> run slow 1/a\n"),
        "{transcript}"
    );
}

#[test]
fn the_number_of_steps_may_be_bounded() {
    for (max_steps, calls) in [(Some(0), 1), (Some(1), 1), (Some(3), 3)] {
        let mut script =
            Script { steps: vec![vec![asks(&[("a", "fast")])]], tools: tools(), ..Script::default() };
        script.settings.max_steps = max_steps;
        let transcript = play(&script);
        assert_eq!(transcript.matches("> call").count(), calls, "{transcript}");
        assert_eq!(transcript.matches("> run").count(), calls, "{transcript}");
        assert!(
            transcript.contains("reason=\"max-steps\"") && !transcript.contains(" error "),
            "{transcript}"
        );
    }
}

#[test]
fn a_reply_that_was_cut_off_runs_no_tool() {
    for (reason, word) in [(FinishReason::Length, "length"), (FinishReason::ContentFilter, "content-filter")]
    {
        let transcript = play(&two_steps(vec![text("so"), call("a", "fast"), finish(reason)]));
        assert!(
            !transcript.contains("> run") && transcript.contains(&format!("reason=\"{word}\"")),
            "{transcript}"
        );
        let result = format!(
            "| Tool tool-result content=\"(tool failed: not run, the reply was cut off: {word})\" isError=true"
        );
        assert!(transcript.contains(&result), "{transcript}");
    }
}

#[test]
fn a_running_eager_tool_of_a_cut_off_reply_is_reported_as_interrupted() {
    let mut script = two_steps(vec![
        call("a", "slow"),
        Beat::Wait(5),
        malformed_call("b", "slow"),
        finish(FinishReason::Length),
    ]);
    script.settings.eager_tools = true;
    let transcript = play(&script);
    let results: Vec<_> = transcript.lines().filter(|line| line.contains("| Tool")).collect();
    assert_snapshot!(results.join("\n"), @r#"
        5 | Tool tool-result content="(tool failed: interrupted, the turn ended before it was done)" isError=true toolCallId="a" toolName="slow"
        5 | Tool tool-result content="(tool failed: not run, the reply was cut off: length)" isError=true toolCallId="b" toolName="slow"
    "#);
}

#[test]
fn eager_tools_run_while_the_answer_streams() {
    let mut script = two_steps(vec![
        call("a", "fast"),
        Beat::Wait(30),
        text("And"),
        call("b", "slow"),
        Beat::Wait(30),
        finish(FinishReason::ToolCalls),
    ]);
    script.settings.eager_tools = true;
    assert_snapshot!(play(&script), @r#"
      0 | User text text="Hi"
      0 user-message text="Hi"
      0 turn-start
      0 > call 0.0
      0 tool-call input={"n":1} toolCallId="a" toolName="fast"
      0 > run fast 0/a
     10 tool-result content="fast done" durationMs=10 isError=false toolCallId="a" toolName="fast"
     30 text-delta delta="And"
     30 tool-call input={"n":1} toolCallId="b" toolName="slow"
     30 > run slow 0/b
     60 step-complete decodeMs=60 genTotalMs=60 ttftMs=0
     60 | Assistant text text="And"
     60 | Assistant tool-call input={"n":1} toolCallId="a" toolName="fast"
     60 | Assistant tool-call input={"n":1} toolCallId="b" toolName="slow"
     60 | Tool tool-result content="fast done" isError=false toolCallId="a" toolName="fast"
    130 tool-result content="slow done" durationMs=100 isError=false toolCallId="b" toolName="slow"
    130 | Tool tool-result content="slow done" isError=false toolCallId="b" toolName="slow"
    130 > call 1.0
    130 text-delta delta="Done"
    130 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    130 | Assistant text text="Done"
    130 done durationMs=130 firstTokenMs=0 reason="stop"
    130 turn-sealed
    "#);
}

#[test]
fn a_stream_that_breaks_keeps_what_eager_tools_did_and_drops_the_rest() {
    let broken = vec![call("a", "fast"), call("b", "slow"), Beat::Wait(30), failed(network_failure("reset"))];
    let mut script = two_steps(broken);
    script.settings.eager_tools = true;
    let transcript = play(&script);
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.starts_with("   30")).collect();
    assert_snapshot!(end.join("\n"), @r#"
    30 | Assistant tool-call input={"n":1} toolCallId="a" toolName="fast"
    30 | Tool tool-result content="fast done" isError=false toolCallId="a" toolName="fast"
    30 tool-result content="(tool failed: interrupted, the turn ended before it was done)" isError=true toolCallId="b" toolName="slow"
    30 | Assistant error category="network" message="reset"
    30 error category="network" message="reset"
    30 step-complete decodeMs=30 genTotalMs=30 ttftMs=0
    30 done durationMs=30 firstTokenMs=0 reason="error"
    30 turn-sealed
    "#);
}

#[test]
fn a_stop_while_the_model_asks_drops_calls_that_have_no_result() {
    let script = two_steps(vec![text("Let me"), call("a", "fast"), Beat::Hang]);
    let script = Script { outside: vec![(3, Input::Abort)], ..script };
    let transcript = play(&script);
    assert!(!transcript.contains("| Assistant tool-call") && !transcript.contains("| Tool"), "{transcript}");
    assert_eq!(transcript.matches("tool-result").count(), 1, "subscribers see the call end: {transcript}");
}

#[test]
fn a_stop_while_tools_run_answers_those_that_are_not_done() {
    let script =
        Script { outside: vec![(50, Input::Abort)], ..two_steps(asks(&[("a", "slow"), ("b", "fast")])) };
    let transcript = play(&script);
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("> abort")).collect();
    assert_snapshot!(end.join("\n"), @r#"
    50 > abort
    50 tool-result content="(tool failed: interrupted, the turn ended before it was done)" durationMs=50 isError=true toolCallId="a" toolName="slow"
    50 | Tool tool-result content="(tool failed: interrupted, the turn ended before it was done)" isError=true toolCallId="a" toolName="slow"
    50 done durationMs=50 firstTokenMs=0 reason="aborted"
    50 turn-sealed
    "#);
}

#[test]
fn only_running_tools_may_produce_output() {
    let mut script = two_steps(asks(&[("a", "loud")]));
    script.tools = vec![Tool::new("loud", 20, ToolAnswer::ok("over")).printing("half-way\n")];
    let output = |call_id: &str, data: &str| Input::ToolOutput {
        call_id: call_id.into(),
        stream: everturn_wire::OutputStream::Stderr,
        data: data.into(),
    };
    script.outside = vec![(5, output("b", "who?")), (6, output("a", "warning")), (7, output("a", ""))];
    let transcript = play(&script);
    let told: Vec<_> = transcript.lines().filter(|line| line.contains("tool-output")).collect();
    assert_snapshot!(told.join("\n"), @r#"
        6 tool-output data="warning" stream="stderr" toolCallId="a"
       10 tool-output data="half-way\n" stream="stdout" toolCallId="a"
    "#);
}
