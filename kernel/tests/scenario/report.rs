//! Final reports: a turn ends with the required report, or with the reason why there is none.

use everturn_kernel::{
    AfterContent, Compaction, FINAL_REPORT, FinishReason, Input, ReportRule, Settings, StreamEvent,
    ToolAnswer, Turn,
};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Fact, Run, Script, Tool, World,
    beat::{call, failed, finish, malformed_call, network_failure, overflow, report, says, text, thought},
    play,
};
use everturn_wire::{Category, Chunk, DoneReason, EventBody, Failure, FinalReport, ForcedBy, Role};

use super::{calls, run};

pub(super) fn settings() -> Settings {
    Settings { final_report: Some(ReportRule::default()), ..Settings::default() }
}

/// Returns a script with these replies, one per step.
fn script_of(steps: Vec<Vec<Beat>>) -> Script {
    let steps = steps.into_iter().map(|beats| vec![beats]).collect();
    let broken = Tool::new("broken", 10, ToolAnswer::error("no"));
    let tools = vec![Tool::new("read", 10, ToolAnswer::ok("42")), broken];
    Script { settings: settings(), steps, tools, ..Script::default() }
}

fn reports(valid: bool) -> Vec<Beat> {
    vec![report("r", valid), finish(FinishReason::ToolCalls)]
}

fn calls_tool(name: &str) -> Vec<Beat> {
    vec![call("a", name), finish(FinishReason::ToolCalls)]
}

fn end(turn: &Turn) -> (DoneReason, FinalReport) {
    let outcome = turn.outcome().expect("it is sealed");
    (outcome.reason.clone(), outcome.report.as_deref().expect("it must report").clone())
}

pub(super) fn succeeds(turn: &Turn) {
    let (reason, report) = end(turn);
    assert_eq!((reason, report.success), (DoneReason::Stop, true), "{report:?}");
    assert_eq!(report.report, Some(serde_json::json!({ "valid": true })));
}

pub(super) fn fails(turn: &Turn, why: &str) {
    let (reason, report) = end(turn);
    assert_eq!((reason, report.success, report.report), (DoneReason::Error, false, None));
    let said = report.reason.expect("it says why");
    assert!(said.contains(why), "{said}");
    assert!(report.context.expect("it says how far it came").contains("steps"));
}

fn guidance(world: &World) -> Vec<String> {
    world.log().pick(|fact| match fact {
        Fact::Kept(Role::System, Chunk::System { text, .. }) => Some(text.clone()),
        _ => None,
    })
}

pub(super) fn forced(world: &World) -> Vec<ForcedBy> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ReportForced { by, .. }) => Some(*by),
        _ => None,
    })
}

fn collapsed(world: &World) -> Vec<(u32, u32)> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::StepsCollapsed { from, to, .. }) => Some((*from, *to)),
        _ => None,
    })
}

fn results(world: &World) -> Vec<(String, bool)> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ToolResult { content, is_error, .. }) => Some((content.clone(), *is_error)),
        _ => None,
    })
}

#[test]
fn a_reply_without_a_call_is_followed_by_guidance_and_the_report_ends_the_turn() {
    assert_snapshot!(play(&script_of(vec![says("I think it rains."), reports(true)])), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 text-delta delta="I think it rains."
        0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
        0 | Assistant text text="I think it rains."
        0 | System system text="TURN-FAILED: the reply has neither a tool call nor a final report: call a tool, or final_report when you are done"
        0 report-missing attempt=1 maxAttempts=3 reason="the reply has neither a tool call nor a final report: call a tool, or final_report when you are done"
        0 > call 1.0
        0 tool-call input={"valid":true} toolCallId="r" toolName="final_report"
        0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
        0 | Assistant tool-call input={"valid":true} toolCallId="r" toolName="final_report"
        0 tool-result content="The report was accepted." isError=false toolCallId="r" toolName="final_report"
        0 | Tool tool-result content="The report was accepted." isError=false toolCallId="r" toolName="final_report"
        0 final-report report={"valid":true} success=true
        0 done durationMs=0 firstTokenMs=0 reason="stop"
        0 turn-sealed
    "#);
}

#[test]
fn an_empty_reply_is_not_kept_and_the_model_is_told() {
    let empty = vec![thought(""), finish(FinishReason::Stop)];
    let (world, turn) = run(&script_of(vec![empty, reports(true)]));
    assert_eq!(guidance(&world), ["TURN-FAILED: the reply was empty"]);
    assert!(world.log().sleeps().is_empty());
    let kept: Vec<_> = world.log().history().into_iter().map(|(role, _)| role).collect();
    assert_eq!(kept, [Role::User, Role::System, Role::Assistant, Role::Tool]);
    succeeds(&turn);
}

#[test]
fn failed_replies_have_their_own_limit_and_use_up_no_steps() {
    let script = script_of(vec![says("a"), says("b"), says("c"), says("never")]);
    let (world, turn) = run(&Script { settings: Settings { max_steps: Some(9), ..settings() }, ..script });
    assert_eq!((calls(&world).len(), guidance(&world).len()), (6, 5));
    assert_eq!(forced(&world), [ForcedBy::Exhausted], "the last step has three attempts of its own");
    fails(
        &turn,
        "no acceptable final report in 6 attempts: the reply has neither a tool call nor a final report",
    );
    // Two of three steps are for the tool, one for the report. Failed replies in between use up none of them.
    let script = script_of(vec![calls_tool("read"), says("a"), says("b"), calls_tool("read"), reports(true)]);
    let (world, turn) = run(&Script { settings: Settings { max_steps: Some(3), ..settings() }, ..script });
    assert_eq!((calls(&world).len(), forced(&world)), (5, vec![ForcedBy::MaxSteps]));
    succeeds(&turn);
}

#[test]
fn guidance_names_the_cut_first_and_one_more_step_is_left() {
    let cut = vec![text("On and on"), finish(FinishReason::Length)];
    let (world, turn) = run(&script_of(vec![cut, reports(true)]));
    let told = guidance(&world);
    assert!(
        told[0]
            .starts_with("TURN-FAILED: the reply was cut off at the token limit: be shorter | the reply has")
    );
    assert_eq!(collapsed(&world), [(10, 2)]);
    succeeds(&turn);
}

#[test]
fn malformed_arguments_are_answered_and_valid_calls_run_without_guidance() {
    let both = vec![malformed_call("m", "read"), call("a", "read"), finish(FinishReason::ToolCalls)];
    let (world, turn) = run(&script_of(vec![both, reports(true)]));
    let results = results(&world);
    assert!(results[0].0.starts_with("(tool failed: the arguments are not valid JSON"), "{results:?}");
    assert_eq!(results[1], ("42".into(), false));
    assert!(guidance(&world).is_empty());
    assert!(collapsed(&world).is_empty());
    succeeds(&turn);
}

#[test]
fn the_last_step_offers_only_the_report() {
    let mut steps = vec![calls_tool("read"); 9];
    steps.push(reports(true));
    let (world, turn) = run(&script_of(steps));
    assert_eq!(
        (calls(&world).len(), forced(&world)),
        (10, vec![ForcedBy::MaxSteps]),
        "ten unless set otherwise"
    );
    succeeds(&turn);
    // A model that still calls another tool is refused, and uses up its attempts.
    let script = script_of(vec![calls_tool("read")]);
    let (world, turn) = run(&Script { settings: Settings { max_steps: Some(2), ..settings() }, ..script });
    let ran = world.log().pick(|fact| matches!(fact, Fact::Ran { .. }).then_some(()));
    assert_eq!((ran.len(), calls(&world).len()), (1, 4));
    assert_eq!(results(&world)[1].0, "(tool failed: not run, only final_report may be called now)");
    fails(&turn, "in 3 attempts");
    let (world, _) = run(&Script {
        settings: Settings { max_steps: Some(1), ..settings() },
        ..script_of(vec![reports(true)])
    });
    assert_eq!(forced(&world), [ForcedBy::MaxSteps], "the first step may be the last");
}

#[test]
fn a_rejected_report_leaves_one_step_more_once() {
    let (world, turn) =
        run(&script_of(vec![calls_tool("read"), reports(false), reports(false), reports(true)]));
    assert_eq!(results(&world)[1], ("(tool failed: the report was rejected: it is not valid)".into(), true));
    assert_eq!((collapsed(&world), forced(&world)), (vec![(10, 3)], Vec::new()));
    assert_eq!(calls(&world).len(), 4);
    succeeds(&turn);
    // The step goes on, and after it comes the last one.
    let (world, turn) =
        run(&script_of(vec![reports(false), calls_tool("read"), calls_tool("read"), reports(true)]));
    assert_eq!((collapsed(&world), forced(&world)), (vec![(10, 2)], vec![ForcedBy::MaxSteps; 2]));
    assert_eq!(results(&world)[2].0, "(tool failed: not run, only final_report may be called now)");
    succeeds(&turn);
    let (world, turn) = run(&script_of(vec![reports(false)]));
    assert_eq!((calls(&world).len(), forced(&world)), (6, vec![ForcedBy::Exhausted]));
    fails(&turn, "in 6 attempts: the final report was rejected");
}

#[test]
fn failed_replies_count_per_step_and_a_good_step_clears_them() {
    let mut steps = vec![calls_tool("read"); 202];
    for at in [20, 90, 160] {
        steps[at] = says("I think so.");
    }
    steps.push(reports(true));
    let script = script_of(steps);
    let (world, turn) = run(&Script { settings: Settings { max_steps: Some(201), ..settings() }, ..script });
    assert_eq!((calls(&world).len(), guidance(&world).len()), (203, 3));
    assert_eq!(forced(&world), Vec::new());
    succeeds(&turn);
    // Two in a row, twice.
    let fails_twice = vec![says("a"), says("b"), calls_tool("read")];
    let (world, turn) = run(&script_of([fails_twice.clone(), fails_twice, vec![reports(true)]].concat()));
    let attempts = world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ReportMissing { attempt, .. }) => Some(*attempt),
        _ => None,
    });
    assert_eq!(attempts, [1, 2, 1, 2]);
    succeeds(&turn);
}

#[test]
fn failed_replies_that_run_out_lead_to_the_last_step() {
    let (world, turn) = run(&script_of(vec![says("a"), says("b"), says("c"), says("d"), reports(true)]));
    assert_eq!((calls(&world).len(), forced(&world)), (5, vec![ForcedBy::Exhausted]));
    assert_eq!(guidance(&world).len(), 4, "the model is told about the last one, too");
    succeeds(&turn);
    // Other calls are refused in it.
    let (world, turn) =
        run(&script_of(vec![says("a"), says("b"), says("c"), calls_tool("read"), reports(true)]));
    assert_eq!(results(&world)[0].0, "(tool failed: not run, only final_report may be called now)");
    succeeds(&turn);
}

#[test]
fn only_malformed_calls_are_a_failed_reply() {
    let bad =
        || vec![malformed_call("m", "read"), malformed_call("n", "read"), finish(FinishReason::ToolCalls)];
    let (world, turn) = run(&script_of(vec![bad(), bad(), bad(), reports(true)]));
    assert_eq!((calls(&world).len(), forced(&world)), (4, vec![ForcedBy::Exhausted]));
    assert!(guidance(&world).is_empty(), "the results say what is wrong");
    succeeds(&turn);
    // They use up no steps.
    let script = script_of(vec![bad(), bad(), calls_tool("read"), reports(true)]);
    let (world, turn) = run(&Script { settings: Settings { max_steps: Some(3), ..settings() }, ..script });
    assert_eq!(forced(&world), Vec::new());
    succeeds(&turn);
}

#[test]
fn a_report_whose_arguments_are_malformed_counts_as_an_attempt() {
    let bad = vec![malformed_call("r", FINAL_REPORT), finish(FinishReason::ToolCalls)];
    let (world, turn) = run(&script_of(vec![bad, reports(true)]));
    assert_eq!((collapsed(&world), calls(&world).len()), (vec![(10, 2)], 2));
    succeeds(&turn);
}

#[test]
fn a_valid_report_beside_failed_calls_is_kept_until_a_better_one_comes() {
    let beside = |name: &str| vec![report("r", true), call("a", name), finish(FinishReason::ToolCalls)];
    let (world, turn) = run(&script_of(vec![beside("read")]));
    assert_eq!(calls(&world).len(), 1, "nothing failed");
    succeeds(&turn);
    // The report is kept; then the model fails or is stopped.
    for after in [
        vec![says("never mind")],
        vec![reports(false)],
        vec![vec![failed(Failure::new(Category::Auth, false, "HTTP 401"))]],
    ] {
        let (world, turn) = run(&script_of([vec![beside("broken")], after].concat()));
        assert!(calls(&world).len() > 1);
        succeeds(&turn);
    }
    let (world, turn) = run(&script_of(vec![beside("broken"), reports(true)]));
    assert_eq!((calls(&world).len(), collapsed(&world)), (2, vec![(10, 2)]));
    succeeds(&turn);
    let stopped = Script {
        outside: vec![(5, Input::Abort)],
        ..script_of(vec![vec![report("r", true), call("a", "read"), finish(FinishReason::ToolCalls)]])
    };
    let (_, turn) = run(&stopped);
    let (reason, report) = end(&turn);
    assert_eq!((reason, report.success), (DoneReason::Aborted, true), "a stop does not lose the report");
}

#[test]
fn an_overflow_forces_the_report_where_no_summary_helps() {
    for compaction in [None, Some(Compaction::default())] {
        let steps = vec![vec![overflow(), overflow(), reports(true)]];
        let first_fits = vec![vec![overflow(), reports(true)]];
        let steps = if compaction.is_some() { steps } else { first_fits };
        let script = Script { steps, ..script_of(Vec::new()) };
        let (world, turn) = run(&Script { settings: Settings { compaction, ..settings() }, ..script });
        assert_eq!(forced(&world), [ForcedBy::Overflow]);
        succeeds(&turn);
    }
    // The summary cannot be made either.
    let script = Script {
        settings: Settings { compaction: Some(Compaction::default()), ..settings() },
        steps: vec![vec![overflow(), reports(true)]],
        summaries: vec![overflow()],
        ..script_of(Vec::new())
    };
    let (world, turn) = run(&script);
    assert_eq!(forced(&world), [ForcedBy::Overflow]);
    succeeds(&turn);
    // Neither does the report fit.
    let (world, turn) = run(&Script { steps: vec![vec![overflow()]], ..script_of(Vec::new()) });
    assert_eq!(calls(&world).len(), 2);
    fails(&turn, "too long");
}

#[test]
fn a_history_that_barely_fits_forces_the_report_before_it_is_refused() {
    let nearly_full = || vec![Beat::Say(StreamEvent::NearlyFull)];
    let script = Script { steps: vec![vec![nearly_full(), reports(true)]], ..script_of(Vec::new()) };
    let (world, turn) = run(&script);
    assert_eq!((forced(&world), calls(&world).len()), (vec![ForcedBy::Overflow], 2));
    assert!(world.log().pick(|fact| matches!(fact, Fact::Failed(..)).then_some(())).is_empty());
    succeeds(&turn);
    // It needs no retries: nothing has failed.
    let (_, turn) = run(&Script { schedule: None, ..script });
    succeeds(&turn);
}

#[test]
fn failures_that_a_report_cannot_help_force_nothing() {
    for category in [Category::Auth, Category::ContentPolicy, Category::InvalidRequest] {
        let refused = vec![failed(Failure::new(category, false, "HTTP 400: no"))];
        let (world, turn) = run(&script_of(vec![refused]));
        assert_eq!((calls(&world).len(), forced(&world).len()), (1, 0));
        fails(&turn, "HTTP 400: no");
    }
}

#[test]
fn a_failure_after_content_and_a_stop_end_with_a_synthesized_report() {
    let broken = vec![text("It"), failed(network_failure("reset"))];
    let (_, turn) = run(&script_of(vec![broken.clone()]));
    fails(&turn, "reset");
    let script = Script { steps: vec![vec![broken, reports(true)]], ..script_of(Vec::new()) };
    let rewinds = Settings { after_content: AfterContent::Rewind, ..settings() };
    let (_, turn) = run(&Script { settings: rewinds, ..script });
    succeeds(&turn);
    let script = Script { outside: vec![(100, Input::Abort)], ..script_of(vec![vec![Beat::Hang]]) };
    let (_, turn) = run(&script);
    let (reason, report) = end(&turn);
    assert_eq!((reason, report.success), (DoneReason::Aborted, false));
    assert_eq!(report.reason.as_deref(), Some("the turn was stopped"));
}

#[test]
fn a_crash_at_any_point_ends_with_the_same_report() {
    let beside = vec![report("r", true), call("a", "broken"), finish(FinishReason::ToolCalls)];
    let steps = vec![says("I think"), calls_tool("read"), beside, reports(false), says("never mind")];
    let script = script_of(steps);
    let (calm, turn) = run(&script);
    for point in 0..calm.points() {
        let mut world = World::new(script.clone());
        world.crash_at(point);
        if world.begin() == Run::Crashed {
            world.crash_never();
        }
        let crashed = world.run().sealed().expect("the turn ends");
        world.check();
        assert_eq!(turn.outcome(), crashed.outcome(), "crash at {point}");
        assert_eq!(guidance(&calm), guidance(&world), "crash at {point}");
        assert_eq!(collapsed(&calm), collapsed(&world), "crash at {point}");
    }
}
