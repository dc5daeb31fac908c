//! Approvals: a call waits for a person for any length of time.

use everturn_kernel::{Answer, Approval, Check, FinishReason, Input, Settings, ToolAnswer, Wait, Want};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Fact, Person, Run, START, Script, Tool, World,
    beat::{call, finish, says, text},
    play,
};
use everturn_wire::{ApprovalScope, Chunk, Decider, Decision, EventBody, Verdict};

fn asks(calls: &[(&str, &str)]) -> Vec<Beat> {
    let calls = calls.iter().map(|(id, name)| call(id, name));
    calls.chain([finish(FinishReason::ToolCalls)]).collect()
}

/// Returns a script in which the model calls these tools. `write` and `delete` need approval.
fn script_of(calls: &[(&str, &str)]) -> Script {
    let approval = Approval { reason: Some("it changes files".into()), within_ms: None };
    let checks = ["write", "delete"].map(|name| (name.to_owned(), Check::Person(approval.clone())));
    Script {
        steps: vec![vec![asks(calls)], vec![says("Done")]],
        tools: ["read", "write", "delete"].map(|name| Tool::new(name, 10, ToolAnswer::ok("ok"))).to_vec(),
        checks: checks.to_vec(),
        ..Script::default()
    }
}

fn within(script: Script, within_ms: u64) -> Script {
    let approval = Approval { reason: None, within_ms: Some(within_ms) };
    Script { checks: vec![("write".into(), Check::Person(approval))], ..script }
}

fn answer(call_id: &str, allows: bool) -> Answer {
    Answer {
        step: 0,
        call_id: call_id.into(),
        allows,
        whole_tool: false,
        reason: None,
        name: None,
        via: None,
    }
}

fn says_later(after_ms: u64, answer: Answer) -> (u64, Input) {
    (after_ms, Input::Answer(Box::new(answer)))
}

#[test]
fn a_call_runs_when_a_person_allows_it_and_the_others_do_not_wait() {
    let script = script_of(&[("a", "write"), ("b", "read")]);
    let person = Some(Person { after_ms: 3_600_000, allows: true });
    assert_snapshot!(play(&Script { person, ..script }), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 tool-call input={"n":1} toolCallId="a" toolName="write"
        0 tool-call input={"n":1} toolCallId="b" toolName="read"
        0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
        0 | Assistant tool-call input={"n":1} toolCallId="a" toolName="write"
        0 | Assistant tool-call input={"n":1} toolCallId="b" toolName="read"
        0 approval-requested input={"n":1} reason="it changes files" toolCallId="a" toolName="write"
        0 > run read 0/b
       10 tool-result content="ok" durationMs=10 isError=false toolCallId="b" toolName="read"
       10 | Tool tool-result content="ok" isError=false toolCallId="b" toolName="read"
    3600000 > allow
    3600000 approval-resolved toolCallId="a" verdict="allowed"
    3600000 > run write 0/a
    3600010 tool-result content="ok" decisions=[{"by":"person","verdict":"allowed"}] durationMs=10 isError=false toolCallId="a" toolName="write"
    3600010 | Tool tool-result content="ok" decisions=[{"by":"person","verdict":"allowed"}] isError=false toolCallId="a" toolName="write"
    3600010 > call 1.0
    3600010 text-delta delta="Done"
    3600010 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    3600010 | Assistant text text="Done"
    3600010 done durationMs=3600010 firstTokenMs=0 reason="stop"
    3600010 turn-sealed
    "#);
}

#[test]
fn a_denial_is_a_result_that_says_so() {
    let denied = Answer { reason: Some("not on Fridays".into()), ..answer("a", false) };
    let script = Script { outside: vec![says_later(50, denied)], ..script_of(&[("a", "write")]) };
    assert_snapshot!(play(&script), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 tool-call input={"n":1} toolCallId="a" toolName="write"
        0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
        0 | Assistant tool-call input={"n":1} toolCallId="a" toolName="write"
        0 approval-requested input={"n":1} reason="it changes files" toolCallId="a" toolName="write"
       50 > deny
       50 approval-resolved reason="not on Fridays" toolCallId="a" verdict="denied"
       50 tool-result content="(tool failed: the user denied this call: not on Fridays)" decisions=[{"by":"person","reason":"not on Fridays","verdict":"denied"}] isError=true toolCallId="a" toolName="write"
       50 | Tool tool-result content="(tool failed: the user denied this call: not on Fridays)" decisions=[{"by":"person","reason":"not on Fridays","verdict":"denied"}] isError=true toolCallId="a" toolName="write"
       50 > call 1.0
       50 text-delta delta="Done"
       50 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
       50 | Assistant text text="Done"
       50 done durationMs=50 firstTokenMs=0 reason="stop"
       50 turn-sealed
    "#);
}

#[test]
fn nobody_answers_in_time_and_the_call_is_denied() {
    let script = within(script_of(&[("a", "write"), ("b", "write")]), 60_000);
    let allowed = says_later(59_999, answer("b", true));
    let world = |parks| {
        let mut world = World::new(Script { outside: vec![allowed.clone()], parks, ..script.clone() });
        world.run().sealed().expect("the turn ends");
        world.check();
        world
    };
    for parks in [false, true] {
        let results = results(&world(parks));
        let denied = "(tool failed: not approved in time, so it was not run)";
        assert_eq!(results, [("a".to_owned(), denied.to_owned()), ("b".into(), "ok".into())]);
    }
}

#[test]
fn a_late_second_or_misdirected_answer_changes_nothing() {
    let other_step = Answer { step: 1, ..answer("a", false) };
    let outside = vec![
        says_later(10, other_step),
        says_later(20, answer("b", true)),
        says_later(30, answer("z", true)),
        says_later(40, answer("a", true)),
        says_later(45, answer("a", false)),
        says_later(60, answer("a", false)),
    ];
    let mut world = World::new(Script { outside, ..script_of(&[("a", "write"), ("b", "read")]) });
    world.run().sealed().expect("the turn ends");
    world.check();
    assert_eq!(results(&world), [("b".to_owned(), "ok".to_owned()), ("a".into(), "ok".into())]);
    assert_eq!(verdicts(&world), [("a".to_owned(), Verdict::Allowed)]);
}

#[test]
fn one_answer_can_be_for_all_calls_of_the_tool_that_wait() {
    let whole = Answer { whole_tool: true, ..answer("b", true) };
    let calls = [("a", "write"), ("b", "write"), ("c", "delete")];
    let outside = vec![says_later(10, whole), says_later(90, answer("c", false))];
    let mut world = World::new(Script { outside, ..script_of(&calls) });
    world.run().sealed().expect("the turn ends");
    world.check();
    let allowed = |id: &str| (id.to_owned(), Verdict::Allowed);
    assert_eq!(verdicts(&world), [allowed("b"), allowed("a"), ("c".into(), Verdict::Denied)]);
}

#[test]
fn the_persons_name_is_kept_with_the_result() {
    let (name, via) = (Some("Ada".to_owned()), Some("page".to_owned()));
    let whole = Answer { whole_tool: true, name: name.clone(), via: via.clone(), ..answer("b", true) };
    let no = Answer { reason: Some("not on Fridays".into()), whole_tool: true, ..answer("c", false) };
    let calls = [("a", "write"), ("b", "write"), ("c", "delete"), ("d", "read")];
    let outside = vec![says_later(10, whole), says_later(90, no)];
    let mut world = World::new(Script { outside, ..script_of(&calls) });
    world.run().sealed().expect("the turn ends");
    world.check();
    let allowed = Decision {
        scope: Some(ApprovalScope::Conversation),
        name,
        via,
        ..Decision::new(Decider::Person, Verdict::Allowed)
    };
    let reason = Some("not on Fridays".to_owned());
    let denied = Decision { reason, ..Decision::new(Decider::Person, Verdict::Denied) };
    let mut kept = decisions(&world);
    kept.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(
        kept,
        [
            ("a".to_owned(), vec![allowed.clone()]),
            ("b".into(), vec![allowed]),
            ("c".into(), vec![denied]),
            ("d".into(), vec![]),
        ]
    );
}

#[test]
fn a_missing_answer_is_kept_with_the_result() {
    let mut world = World::new(within(script_of(&[("a", "write")]), 60_000));
    world.run().sealed().expect("the turn ends");
    let timed_out = Decision::new(Decider::Person, Verdict::TimedOut);
    assert_eq!(decisions(&world), [("a".to_owned(), vec![timed_out])]);
}

#[test]
fn a_stop_ends_the_wait_and_says_so() {
    let script = Script { outside: vec![(500, Input::Abort)], ..script_of(&[("a", "write")]) };
    let mut world = World::new(Script { parks: true, ..script });
    assert!(matches!(world.run(), Run::Sealed(_)));
    world.check();
    assert_eq!(verdicts(&world), [("a".to_owned(), Verdict::Cancelled)]);
}

#[test]
fn the_host_may_park_the_wait_and_it_outlives_restarts() {
    let settings = Settings { max_recoveries: 0, ..Settings::default() };
    let mut world = World::new(Script { settings, parks: true, ..script_of(&[("a", "write")]) });
    let Run::Left(turn, Want::Person { step: 0, until: None }) = world.begin() else {
        panic!("{}", world.transcript())
    };
    assert_eq!(turn.wait(), Wait::Person { until: None });
    for _ in 0..20 {
        world.clock().advance(86_400_000);
        assert!(matches!(world.recover(), Run::Left(..)), "{}", world.transcript());
    }
    let told = world
        .log()
        .pick(|fact| matches!(fact, Fact::Told(EventBody::ApprovalRequested { .. })).then_some(()));
    assert_eq!(told.len(), 1, "told once");
    world.say(Input::Answer(Box::new(answer("a", true))));
    assert!(matches!(world.run(), Run::Sealed(_)));
    world.check();
    assert_eq!(results(&world), [("a".to_owned(), "ok".to_owned())]);
}

#[test]
fn a_clock_set_back_does_not_lengthen_the_wait() {
    let mut world = World::new(Script { parks: true, ..within(script_of(&[("a", "write")]), 60_000) });
    assert!(
        matches!(world.begin(), Run::Left(_, Want::Person { until: Some(at), .. }) if at == START.plus(60_000))
    );
    world.clock().set(everturn_kernel::Millis(START.0 - 3_600_000));
    let Run::Left(_, Want::Person { until: Some(at), .. }) = world.recover() else {
        panic!("{}", world.transcript())
    };
    assert_eq!(at, everturn_kernel::Millis(START.0 - 3_600_000 + 60_000));
}

#[test]
fn a_refused_call_is_answered_and_asks_nobody() {
    let checks = vec![("write".into(), Check::Refused("(tool failed: denied by policy)".into()))];
    let mut world = World::new(Script { checks, ..script_of(&[("a", "write"), ("b", "read")]) });
    world.run().sealed().expect("the turn ends");
    world.check();
    let refused = "(tool failed: denied by policy)";
    assert_eq!(results(&world), [("a".to_owned(), refused.to_owned()), ("b".into(), "ok".into())]);
    assert_eq!(verdicts(&world), []);
}

#[test]
fn an_eager_tool_waits_for_the_end_of_the_stream_to_ask() {
    let mut script = script_of(&[]);
    script.settings = Settings { eager_tools: true, ..Settings::default() };
    script.steps[0] = vec![vec![
        call("a", "write"),
        call("b", "read"),
        Beat::Wait(1_000),
        text("and then"),
        finish(FinishReason::ToolCalls),
    ]];
    script.person = Some(Person { after_ms: 5, allows: true });
    let mut world = World::new(script);
    world.run().sealed().expect("the turn ends");
    world.check();
    let ran = world.log().pick_at(|at, fact| match fact {
        Fact::Ran { id, .. } => Some((at.since(START), id.clone())),
        _ => None,
    });
    assert_eq!(ran, [(0, "b".to_owned()), (1_005, "a".into())]);
}

fn results(world: &World) -> Vec<(String, String)> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ToolResult { tool_call_id, content, .. }) => {
            Some((tool_call_id.clone(), content.clone()))
        }
        _ => None,
    })
}

/// Returns the decisions kept with the results.
fn decisions(world: &World) -> Vec<(String, Vec<Decision>)> {
    world.log().pick(|fact| match fact {
        Fact::Kept(_, Chunk::ToolResult { tool_call_id, decisions, .. }) => {
            Some((tool_call_id.clone(), decisions.clone()))
        }
        _ => None,
    })
}

fn verdicts(world: &World) -> Vec<(String, Verdict)> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ApprovalResolved { tool_call_id, verdict, .. }) => {
            Some((tool_call_id.clone(), *verdict))
        }
        _ => None,
    })
}
