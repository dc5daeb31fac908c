//! Automatic reviews: which failures are tried again, for how long, and what follows.

use std::slice;

use everturn_kernel::{
    Approval, Assessment, Check, FinishReason, Input, ReviewAnswer, ReviewerSwitch, Settings, ToolAnswer,
    Turn,
};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Fact, Person, Run, START, Script, Tool, World,
    beat::{call, finish, says},
    play,
};
use everturn_wire::{
    Category, Chunk, Decider, Decision, DoneReason, EventBody, Failure, TargetRole, Verdict,
};

fn allow() -> ReviewAnswer {
    let risk_level = Some("low".into());
    ReviewAnswer::Assessed(Assessment { allows: true, risk_level, ..Assessment::default() })
}

fn deny() -> ReviewAnswer {
    let rationale = Some("nobody asked for it".into());
    ReviewAnswer::Assessed(Assessment { rationale, ..Assessment::default() })
}

fn unreadable() -> ReviewAnswer {
    ReviewAnswer::Unreadable("the answer is no JSON".into())
}

fn fails(category: Category) -> ReviewAnswer {
    ReviewAnswer::Failed(Failure::new(category, true, "it broke"))
}

/// Returns a script in which the model calls `write` once and the reviewer answers each attempt after 10 ms.
fn script_of(answers: &[ReviewAnswer], otherwise: Option<Approval>) -> Script {
    let check = Check::Review { within_ms: 90_000, otherwise };
    Script {
        steps: vec![vec![vec![call("a", "write"), finish(FinishReason::ToolCalls)]], vec![says("Done")]],
        tools: vec![Tool::new("write", 10, ToolAnswer::ok("written"))],
        checks: vec![("write".into(), check)],
        reviewer: answers.iter().cloned().map(|answer| (10, answer)).collect(),
        ..Script::default()
    }
}

fn run(script: Script) -> (World, Turn) {
    let mut world = World::new(script);
    let turn = world.run().sealed().expect("the turn ends");
    world.check();
    (world, turn)
}

/// Returns the number of attempts, and the verdict of each review with its number of attempts.
fn reviews(world: &World) -> (usize, Vec<(Verdict, u32)>) {
    let attempts = world.log().pick(|fact| matches!(fact, Fact::Reviewed { .. }).then_some(()));
    let ends = world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ReviewCompleted { verdict, attempt_count, .. }) => {
            Some((*verdict, *attempt_count))
        }
        _ => None,
    });
    (attempts.len(), ends)
}

fn result(world: &World) -> Vec<String> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ToolResult { content, .. }) => Some(content.clone()),
        _ => None,
    })
}

#[test]
fn an_allowed_call_runs_and_intermediate_failures_are_silent() {
    assert_snapshot!(play(&script_of(&[fails(Category::Overloaded), allow()], None)), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
        0 tool-call input={"n":1} toolCallId="a" toolName="write"
        0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
        0 | Assistant tool-call input={"n":1} toolCallId="a" toolName="write"
        0 review-started toolCallId="a" toolName="write"
        0 > review a.0
      215 > review a.1
      225 review-completed attemptCount=2 durationMs=225 riskLevel="low" toolCallId="a" verdict="allowed"
      225 > run write 0/a
      235 tool-result content="written" decisions=[{"by":"review","riskLevel":"low","verdict":"allowed"}] durationMs=10 isError=false toolCallId="a" toolName="write"
      235 | Tool tool-result content="written" decisions=[{"by":"review","riskLevel":"low","verdict":"allowed"}] isError=false toolCallId="a" toolName="write"
      235 > call 1.0
      235 text-delta delta="Done"
      235 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
      235 | Assistant text text="Done"
      235 done durationMs=235 firstTokenMs=0 reason="stop"
      235 turn-sealed
    "#);
}

#[test]
fn each_category_is_tried_again_or_not() {
    use Category::{
        Auth, Cancelled, ContentPolicy, ContextOverflow, Internal, InvalidRequest, InvalidResponse, Network,
        NotFound, Overloaded, Permission, QuotaExhausted, RateLimited, ServerError, Timeout, Unknown,
    };
    for category in [Timeout, Overloaded, ServerError, Network, InvalidResponse] {
        let (world, _) = run(script_of(&[fails(category), fails(category), allow()], None));
        assert_eq!(reviews(&world), (3, vec![(Verdict::Allowed, 3)]), "{category:?}");
        let (world, _) = run(script_of(&[fails(category)], None));
        assert_eq!(reviews(&world), (3, vec![(Verdict::Failed, 3)]), "{category:?}");
    }
    let final_ones = [
        (Auth, Verdict::Failed),
        (Cancelled, Verdict::Cancelled),
        (ContentPolicy, Verdict::Failed),
        (ContextOverflow, Verdict::Failed),
        (Internal, Verdict::Failed),
        (InvalidRequest, Verdict::Failed),
        (NotFound, Verdict::Failed),
        (Permission, Verdict::Failed),
        // Without a hint, a limit would refuse the next attempt too.
        (QuotaExhausted, Verdict::Failed),
        (RateLimited, Verdict::Failed),
        (Unknown, Verdict::Failed),
    ];
    for (category, verdict) in final_ones {
        let (world, _) = run(script_of(&[fails(category), allow()], None));
        assert_eq!(reviews(&world), (1, vec![(verdict, 1)]), "{category:?}");
        assert!(result(&world)[0].starts_with("(tool failed: not run"), "{category:?}");
    }
}

/// Returns when the attempts of the review began, and when it ended, in milliseconds.
fn times(world: &World) -> (Vec<u64>, Vec<u64>) {
    let attempts = world.log().pick_at(|at, fact| match fact {
        Fact::Reviewed { .. } => Some(at.since(START)),
        _ => None,
    });
    let ends = world.log().pick_at(|at, fact| match fact {
        Fact::Told(EventBody::ReviewCompleted { duration_ms, .. }) => {
            assert_eq!(*duration_ms, Some(at.since(START)), "the review began at the start");
            Some(at.since(START))
        }
        _ => None,
    });
    (attempts, ends)
}

fn hinted(category: Category, hint_ms: u64) -> Failure {
    Failure { hint_ms: Some(hint_ms), ..Failure::new(category, true, "it broke") }
}

#[test]
fn a_hint_is_waited_for_if_it_expires_before_the_deadline() {
    for category in [Category::RateLimited, Category::QuotaExhausted, Category::Overloaded] {
        let fails = |hint_ms| ReviewAnswer::Failed(hinted(category, hint_ms));
        let (world, _) = run(script_of(&[fails(20_000), allow()], None));
        assert_eq!(times(&world), (vec![0, 20_010], vec![20_020]), "{category:?}");
        let (world, _) = run(script_of(&[fails(89_990), allow()], None));
        assert_eq!(times(&world), (vec![0], vec![10]), "{category:?}: it fails closed at once");
        assert_eq!(reviews(&world).1, [(Verdict::Failed, 1)], "{category:?}");
    }
}

#[test]
fn a_review_that_is_put_off_uses_up_no_attempt() {
    let held = |hint_ms| ReviewAnswer::Held(hinted(Category::RateLimited, hint_ms));
    // Nothing else is answered, so that the review ends at its deadline.
    let (world, _) = run(script_of(&[held(40_000)], None));
    assert_eq!(times(&world), (vec![0, 40_010, 80_020], vec![80_030]));
    assert_eq!(reviews(&world).1, [(Verdict::Failed, 0)], "no call was made");
    let (world, _) = run(script_of(&[fails(Category::Overloaded), held(40_000)], None));
    assert_eq!(reviews(&world).1, [(Verdict::Failed, 1)]);
}

#[test]
fn a_stop_and_the_deadline_end_the_wait_between_two_attempts() {
    let limited = [ReviewAnswer::Failed(hinted(Category::RateLimited, 60_000)), allow()];
    let (world, turn) = run(Script { outside: vec![(30_000, Input::Abort)], ..script_of(&limited, None) });
    assert_eq!(times(&world), (vec![0], vec![30_000]));
    assert_eq!(reviews(&world).1, [(Verdict::Cancelled, 1)]);
    assert_eq!(turn.outcome().map(|outcome| outcome.reason.clone()), Some(DoneReason::Aborted));
    // The second attempt is due at about 210 ms.
    let mut script = script_of(&[fails(Category::Overloaded), allow()], None);
    script.checks = vec![("write".into(), Check::Review { within_ms: 100, otherwise: None })];
    let (world, _) = run(script);
    assert_eq!(times(&world), (vec![0], vec![100]));
    assert_eq!(reviews(&world).1, [(Verdict::TimedOut, 1)]);
}

#[test]
fn a_reviewer_s_move_is_published_while_it_is_asked() {
    let switched = |step, call_id: &str| {
        let (from, to, reason) = ("a/m".into(), "b/m".into(), "a/m refused the credential".into());
        Input::ReviewerSwitched(Box::new(ReviewerSwitch { step, call_id: call_id.into(), from, to, reason }))
    };
    let script = script_of(&[], None);
    // Asked until 1 s, then waiting, then asked again.
    let reviewer = vec![(1_000, ReviewAnswer::Failed(hinted(Category::Overloaded, 1_000))), (10, allow())];
    let outside = vec![
        (500, switched(0, "a")),
        (600, switched(1, "a")),
        (700, switched(0, "b")),
        (1_500, switched(0, "a")),
    ];
    let (world, _) = run(Script { reviewer, outside, ..script });
    let told = world.log().pick_at(|at, fact| match fact {
        Fact::Told(EventBody::TargetSwitched { role, .. }) => Some((at.since(START), *role)),
        _ => None,
    });
    assert_eq!(told, [(500, TargetRole::Reviewer)]);
    assert_eq!(reviews(&world).1, [(Verdict::Allowed, 2)], "it decides nothing");
}

#[test]
fn an_answer_that_cannot_be_read_is_asked_for_three_times() {
    let (world, _) = run(script_of(&[unreadable(), unreadable(), allow()], None));
    assert_eq!(reviews(&world), (3, vec![(Verdict::Allowed, 3)]));
    let (world, _) = run(script_of(&[unreadable()], None));
    assert_eq!(reviews(&world), (3, vec![(Verdict::Failed, 3)]));
    let closed =
        "(tool failed: not run, because the automatic review came to no decision: the answer is no JSON)";
    assert_eq!(result(&world), [closed]);
}

#[test]
fn a_denial_is_final_and_the_model_gets_it() {
    let (world, _) = run(script_of(&[deny(), allow()], None));
    assert_eq!(reviews(&world), (1, vec![(Verdict::Denied, 1)]));
    assert_eq!(result(&world), ["(tool failed: the automatic review denied this call: nobody asked for it)"]);
}

#[test]
fn without_a_decision_a_person_is_asked_if_there_is_one() {
    let otherwise = Some(Approval { reason: None, within_ms: Some(60_000) });
    let script = script_of(&[fails(Category::Auth)], otherwise.clone());
    let (world, _) = run(Script { person: Some(Person { after_ms: 500, allows: true }), ..script.clone() });
    assert_eq!(result(&world), ["written"]);
    let (world, _) = run(script);
    assert_eq!(result(&world), ["(tool failed: not approved in time, so it was not run)"]);
    // A denial is a decision.
    let denied =
        Script { person: Some(Person { after_ms: 500, allows: true }), ..script_of(&[deny()], otherwise) };
    assert!(result(&run(denied).0)[0].contains("review denied this call"));
}

#[test]
fn all_attempts_share_one_deadline_also_over_restarts() {
    // Each attempt takes 40 s, so the third would end after 120 s.
    let slow = |script: Script| Script { reviewer: vec![(40_000, unreadable())], ..script };
    let (world, _) = run(slow(script_of(&[], None)));
    assert_eq!(reviews(&world), (3, vec![(Verdict::TimedOut, 3)]));
    let ended = |world: &World| {
        world.log().pick_at(|at, fact| match fact {
            Fact::Told(EventBody::ReviewCompleted { .. }) => Some(at.since(START)),
            _ => None,
        })
    };
    assert_eq!(ended(&world), [90_000]);
    let points = world.points();
    for point in 0..points {
        let mut world = World::new(slow(script_of(&[], None)));
        world.crash_at(point);
        world.begin();
        let saved = world.saved().map(|saved| serde_json::to_string(&saved).expect("it is JSON"));
        let is_begun = saved.is_some_and(|saved| saved.contains("reviewing"));
        let is_over = !ended(&world).is_empty();
        // The process is down for half a minute.
        world.clock().advance(30_000);
        let resumed_at = world.clock().now().since(START);
        assert!(matches!(world.run(), Run::Sealed(_)));
        world.check();
        let ended = ended(&world);
        // Anything that expired meanwhile ends at the restart.
        let expected = match (is_over, is_begun) {
            (true, _) => 90_000,
            (false, true) => resumed_at.max(90_000),
            (false, false) => 120_000,
        };
        assert_eq!(ended, [expected], "crash at {point}");
    }
}

#[test]
fn a_reviewer_that_never_answers_is_given_up_at_the_deadline() {
    let (world, _) = run(script_of(&[], None));
    assert_eq!(reviews(&world), (1, vec![(Verdict::TimedOut, 1)]));
    assert!(result(&world)[0].ends_with("it timed out)"));
}

#[test]
fn a_stop_cancels_the_review() {
    let script = Script { outside: vec![(500, Input::Abort)], ..script_of(&[], None) };
    let (world, turn) = run(script);
    assert_eq!(reviews(&world), (1, vec![(Verdict::Cancelled, 1)]));
    assert_eq!(turn.outcome().map(|outcome| outcome.reason.clone()), Some(DoneReason::Aborted));
}

#[test]
fn a_late_answer_of_an_earlier_attempt_changes_nothing() {
    let late = Input::Reviewed { step: 0, call_id: "a".into(), attempt: 0, answer: Box::new(allow()) };
    let script = script_of(&[], None);
    let reviewer = vec![(10, unreadable()), (1_000, deny())];
    let (world, _) = run(Script { reviewer, outside: vec![(500, late)], ..script });
    assert_eq!(reviews(&world), (2, vec![(Verdict::Denied, 2)]));
}

#[test]
fn the_limit_on_parallel_tools_also_limits_reviews() {
    let calls = ["a", "b", "c", "d", "e"].map(|id| call(id, "write"));
    let mut script = script_of(&[allow()], None);
    script.steps[0] = vec![calls.into_iter().chain([finish(FinishReason::ToolCalls)]).collect()];
    for (most, ended) in [(1, 50), (2, 30), (8, 10)] {
        script.settings = Settings { max_parallel_tools: most, ..Settings::default() };
        let (world, _) = run(script.clone());
        let last = world.log().pick_at(|at, fact| match fact {
            Fact::Told(EventBody::ReviewCompleted { .. }) => Some(at.since(START)),
            _ => None,
        });
        assert_eq!(last.last(), Some(&ended), "{most} at once");
    }
}

/// Runs one reviewed call per step. The verdicts are taken from the list in turn.
fn steps(verdicts: &[bool], people: bool) -> (World, Turn) {
    let step = |at: usize| vec![vec![call(&format!("c{at}"), "write"), finish(FinishReason::ToolCalls)]];
    let mut steps: Vec<Vec<Vec<Beat>>> = (0..verdicts.len()).map(step).collect();
    steps.push(vec![says("Done")]);
    let check = match people {
        true => Check::Person(Approval::default()),
        false => Check::Review { within_ms: 90_000, otherwise: None },
    };
    // Each step has its own tool, so that each can have its own answer.
    let script = Script { steps, checks: vec![("write".into(), check)], ..script_of(&[], None) };
    let mut world = World::new(script);
    for (step, allows) in (0..).zip(verdicts) {
        let call_id = format!("c{step}");
        let after_ms = (u64::from(step) + 1) * 1_000;
        world.say_in(
            after_ms,
            match people {
                true => Input::Answer(Box::new(everturn_kernel::Answer {
                    step,
                    call_id,
                    allows: *allows,
                    whole_tool: false,
                    reason: None,
                    name: None,
                    via: None,
                })),
                false => Input::Reviewed {
                    step,
                    call_id,
                    attempt: 0,
                    answer: Box::new(if *allows { allow() } else { deny() }),
                },
            },
        );
    }
    let turn = world.run().sealed().expect("the turn ends");
    world.check();
    (world, turn)
}

fn reason(turn: &Turn) -> DoneReason {
    turn.outcome().expect("it is sealed").reason.clone()
}

#[test]
fn three_denials_in_a_row_end_the_turn_once() {
    let (world, turn) = steps(&[false, false, true, false, false, false, true], false);
    assert_eq!(reason(&turn), DoneReason::Error);
    assert_eq!(reviews(&world).1.len(), 6, "the seventh call was not made");
    let errors = world.log().pick(|fact| match fact {
        Fact::Told(EventBody::Error(report)) => Some(report.message.clone()),
        _ => None,
    });
    assert_eq!(errors, ["the automatic review denied too many tool calls, so the turn was stopped"]);
}

#[test]
fn ten_denials_of_the_last_fifty_end_the_turn() {
    let verdicts: Vec<bool> = (0..60).map(|at| at % 5 != 0).collect();
    let (world, turn) = steps(&verdicts, false);
    assert_eq!(reason(&turn), DoneReason::Error);
    assert_eq!(reviews(&world).1.len(), 46);
    let verdicts: Vec<bool> = (0..120).map(|at| at % 6 != 0).collect();
    let (_, turn) = steps(&verdicts, false);
    assert_eq!(reason(&turn), DoneReason::Stop);
}

#[test]
fn the_decision_is_kept_with_the_result() {
    let kept = |script: Script| {
        let (world, _) = run(script);
        let kept = world.log().pick(|fact| match fact {
            Fact::Kept(_, Chunk::ToolResult { decisions, .. }) => Some(decisions.clone()),
            _ => None,
        });
        kept.concat()
    };
    let by = |by, verdict, reason: Option<&str>| Decision {
        reason: reason.map(Into::into),
        ..Decision::new(by, verdict)
    };
    let low = Decision { risk_level: Some("low".into()), ..by(Decider::Review, Verdict::Allowed, None) };
    assert_eq!(kept(script_of(&[allow()], None)), [low]);
    let denied = by(Decider::Review, Verdict::Denied, Some("nobody asked for it"));
    assert_eq!(kept(script_of(&[deny()], None)), [denied]);
    let failed = by(Decider::Review, Verdict::Failed, Some("it broke"));
    assert_eq!(kept(script_of(&[fails(Category::Auth)], None)), slice::from_ref(&failed));
    let asks = script_of(&[fails(Category::Auth)], Some(Approval::default()));
    let person = Some(Person { after_ms: 5, allows: true });
    let asked = kept(Script { person, ..asks });
    assert_eq!(asked, [failed, by(Decider::Person, Verdict::Allowed, None)], "in order");
}

#[test]
fn denials_by_people_and_failed_reviews_do_not_count() {
    let (_, turn) = steps(&[false; 12], true);
    assert_eq!(reason(&turn), DoneReason::Stop);
    let mut script = script_of(&[fails(Category::Auth)], None);
    script.steps = vec![script.steps[0].clone(); 12];
    script.steps.push(vec![says("Done")]);
    let (world, turn) = run(script);
    assert_eq!((reason(&turn), reviews(&world).1.len()), (DoneReason::Stop, 12));
}
