//! Turns that must end with a report.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{
    Error, MemoryJournal, Orchestrator, Patient, Policy, StartTurn,
    kernel::{Arguments, FinishReason, Request, StreamEvent, ToolCall},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{
    Category, Chunk, DoneReason, Failure, FinalReport, RequiredReport, Role, TurnMetrics, Value,
};
use serde_json::json;

use crate::{
    approval::Write,
    support::{World, answer, ask, builder, refused},
};

fn required() -> RequiredReport {
    RequiredReport::new(json!({
        "type": "object",
        "properties": { "status": { "enum": ["done", "failed"] } },
        "required": ["status"],
    }))
}

fn reports(report: Value) -> Vec<Cue> {
    let arguments = Arguments::Parsed(report);
    let call = ToolCall { id: "r".into(), name: "final_report".into(), arguments, echo: None };
    vec![StreamEvent::ToolCall(call).into(), StreamEvent::Finished(FinishReason::ToolCalls).into()]
}

fn done() -> Vec<Cue> {
    reports(json!({ "status": "done" }))
}

fn asks(text: &str) -> StartTurn {
    StartTurn::new(text).conversation("c").final_report(required())
}

/// Runs a turn to its end: what was told, and the turn as it is read afterwards.
async fn run(world: &World, start: StartTurn) -> (Vec<String>, TurnMetrics) {
    let started = world.orchestrator.start(start).await.unwrap();
    let lines = world.watch(Some(started.from)).await.until("turn-sealed").await;
    (lines, world.orchestrator.turn(&world.id, &started.turn_id).await.unwrap())
}

fn report(turn: &TurnMetrics) -> FinalReport {
    turn.final_report.as_deref().expect("a report").clone()
}

fn offered(request: &Request) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn last_text(request: &Request) -> String {
    let last = request.messages.last().unwrap();
    assert_eq!(last.role, Role::User);
    last.iter()
        .map(|chunk| if let Chunk::Text { text } = chunk { text.clone() } else { format!("{chunk:?}") })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_with_its_report_and_anyone_can_read_it_later() {
    let model = Scripted::new([answer("I think so."), done()]);
    let world = World::of(builder(model.clone()).tool(Write::default()));
    let (lines, turn) = run(&world, asks("Is it done?")).await;
    let ends = ["tool-result r The report was accepted.", "final-report", "done stop", "turn-sealed"];
    assert_eq!(lines[lines.len() - 4..], ends);
    let expected =
        FinalReport { success: true, report: Some(json!({ "status": "done" })), reason: None, context: None };
    assert_eq!((turn.reason.clone(), report(&turn)), (Some(DoneReason::Stop), expected));
    let requests = model.requests();
    assert_eq!(offered(&requests[0]), ["write", "final_report"]);
    assert_eq!(requests[0].tools[1].parameters, required().schema);
    let guidance = last_text(&requests[1]);
    assert!(
        guidance.starts_with("TURN-FAILED: the reply has neither a tool call nor a final report"),
        "{guidance}"
    );
    // In the log it is no word of the user.
    let chunks = world.chunks().await;
    let said: Vec<_> = chunks.iter().filter(|stored| stored.role == Role::User).collect();
    assert_eq!(said.len(), 1, "{chunks:?}");
    let unknown = world.orchestrator.turn(&world.id, &"nobody".into()).await.unwrap_err();
    assert_eq!(unknown.to_string(), "conversation c has no turn nobody");
}

#[tokio::test(start_paused = true)]
async fn a_report_that_does_not_fit_is_rejected_with_what_is_wrong() {
    let model = Scripted::new([reports(json!({ "status": "maybe" })), done()]);
    let world = World::of(builder(model.clone()).tool(Write::default()));
    let (lines, turn) = run(&world, asks("Is it done?")).await;
    let rejected =
        lines.iter().find(|line| line.starts_with("tool-result r (tool failed: the report was rejected"));
    assert!(rejected.is_some_and(|line| line.contains("/status")), "{lines:?}");
    assert!(report(&turn).success);
    let requests = model.requests();
    assert_eq!(offered(&requests[1]), ["write", "final_report"], "the step goes on");
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_replies_fail_gets_a_last_step_for_the_report_alone() {
    let says = || answer("I think so.");
    let model = Scripted::new([says(), says(), says(), done()]);
    let world = World::of(builder(model.clone()).tool(Write::default()));
    let (lines, turn) = run(&world, asks("Is it done?")).await;
    assert!(lines.iter().any(|line| line.starts_with("report-forced")), "{lines:?}");
    assert!(report(&turn).success);
    let requests = model.requests();
    assert_eq!(offered(&requests[2]), ["write", "final_report"]);
    assert_eq!(offered(&requests[3]), ["final_report"]);
    assert!(last_text(&requests[3]).contains("This is the last step"), "{:?}", last_text(&requests[3]));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_will_not_fit_is_not_sent_but_the_report_asked_for() {
    for (window, is_forced) in [(2_000, true), (4_000, false)] {
        let model = Scripted::new([answer(&"x".repeat(9_000)), done()]);
        let world = World::of(builder(model.clone()).context_window("key/model", window));
        world.say("hi").await.turn().await;
        let (lines, turn) = run(&world, asks("Is it done?")).await;
        let forced = lines.iter().any(|line| line.starts_with("report-forced"));
        assert_eq!((forced, report(&turn).success), (is_forced, true), "{lines:?}");
        let requests = model.requests();
        assert_eq!(requests.len(), 2, "none is refused");
        let size = format!("{:?}", requests[1].messages).len();
        assert!(size < 4 * window as usize, "{size}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_gives_none_says_so_and_its_reason_stays() {
    let world = World::new(Scripted::new([answer("It rains.")]));
    let (lines, turn) = run(&world, asks("Is it done?")).await;
    assert!(lines.contains(&"done error".to_owned()), "{lines:?}");
    let report = report(&turn);
    assert_eq!((report.success, report.report), (false, None));
    assert!(report.reason.unwrap().starts_with("the model gave no acceptable final report in 6 attempts"));
    assert_eq!(report.context.unwrap(), "6 steps, 0 retries, 6 replies without an acceptable report");
    let listed = world.orchestrator.metrics(&world.id).await.unwrap();
    assert_eq!(listed[0].final_report.as_ref().map(|report| report.success), Some(false));
}

#[tokio::test(start_paused = true)]
async fn an_overflow_without_a_compactor_asks_for_the_report_over_a_history_cut_down() {
    let too_long =
        vec![StreamEvent::Failed(Failure::new(Category::ContextOverflow, false, "too long")).into()];
    let model = Scripted::new([answer(&"x".repeat(9_000)), too_long, done()]);
    let world = World::new(model.clone());
    world.say("hi").await.turn().await;
    let (lines, turn) = run(&world, asks("Is it done?")).await;
    assert!(lines.iter().any(|line| line.starts_with("report-forced")), "{lines:?}");
    assert!(report(&turn).success);
    let requests = model.requests();
    let size = |request: &Request| format!("{:?}", request.messages).len();
    assert!(size(&requests[2]) * 3 < size(&requests[1]), "{} of {}", size(&requests[2]), size(&requests[1]));
    assert!(format!("{:?}", requests[2].messages).contains("Is it done?"), "the task stays");
}

#[tokio::test(start_paused = true)]
async fn reports_are_required_by_message_by_route_or_of_all() {
    let model = Arc::new(Scripted::new([done()]));
    let route = RequiredReport { max_attempts: Some(7), ..required() };
    let build = || Orchestrator::builder().model("key", "model", model.clone());
    let world = World::of(build().route("careful", ["key/model"], Patient).route_report("careful", route));
    let (_, turn) = run(&world, StartTurn::new("hi").conversation("c").model("route/careful")).await;
    assert!(report(&turn).success);
    let world = World::of(build().final_report(required()));
    let (_, turn) = run(&world, StartTurn::new("hi").conversation("c")).await;
    assert!(report(&turn).success);
    let world = World::of(builder(Scripted::new([answer("hello")])));
    let (_, turn) = run(&world, StartTurn::new("hi").conversation("c")).await;
    assert_eq!(turn.final_report, None);
}

#[tokio::test(start_paused = true)]
async fn the_usual_number_of_steps_is_that_of_turns_without_a_report() {
    let calls = |count: usize| vec![ask("read", &["a"]); count];
    let world = World::of(builder(Scripted::new(calls(30))).usual_max_steps(20));
    let (lines, turn) = run(&world, StartTurn::new("hi").conversation("c")).await;
    assert_eq!((lines.contains(&"done max-steps".to_owned()), turn.steps), (true, 20));
    let world = World::of(builder(Scripted::new([calls(9), vec![done()]].concat())).usual_max_steps(20));
    let (_, turn) = run(&world, asks("hi")).await;
    assert_eq!((report(&turn).success, turn.steps), (true, 10), "the tenth is for the report alone");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_required_is_refused_by_name() {
    let world = World::new(Scripted::new([done()]));
    let large = json!({ "description": "x".repeat(70_000) });
    for (report, why) in [
        (RequiredReport::new(json!(true)), "its schema must be a JSON object"),
        (RequiredReport::new(json!({ "type": "objekt" })), "its schema cannot be used: "),
        (RequiredReport::new(json!({ "$ref": "file:///etc/passwd" })), "its schema cannot be used: "),
        (RequiredReport::new(large), "its schema has 70018 bytes, the limit is 65536"),
        (RequiredReport { max_attempts: Some(0), ..required() }, "maxAttempts must be 1 to 100"),
    ] {
        let error = world.orchestrator.start(asks("hi").final_report(report)).await.unwrap_err();
        assert!(matches!(error, Error::BadReport { .. }), "{error:?}");
        assert!(
            error.to_string().starts_with(&format!("the final report cannot be required: {why}")),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_to_the_same_report() {
    let journal = Arc::new(MemoryJournal::new());
    let before =
        World::of(builder(Scripted::new([answer("I think so."), refused()])).journal(journal.clone()));
    let started = before.orchestrator.start(asks("Is it done?")).await.unwrap();
    before.watch(Some(started.from)).await.until("provider-retry").await;
    before.orchestrator.shutdown(Duration::ZERO).await;
    let model = Scripted::new([reports(json!({})), done()]);
    // Configured otherwise: what the turn was asked for was saved with it.
    let after = World::of(builder(model.clone()).journal(journal));
    after.orchestrator.resume().await.unwrap();
    after.watch(Some(started.from)).await.until("turn-sealed").await;
    let turn = after.orchestrator.turn(&after.id, &started.turn_id).await.unwrap();
    assert_eq!((report(&turn).success, model.calls()), (true, 2));
}

#[tokio::test(start_paused = true)]
async fn two_refusals_and_a_report_are_the_work_of_one_turn() {
    let world = World::new(Scripted::new([refused(), refused(), done()]));
    let (lines, turn) = run(&world, asks("Is it done?")).await;
    assert_eq!(lines.iter().filter(|line| line.starts_with("provider-retry")).count(), 2);
    assert_eq!((report(&turn).success, turn.retries), (true, Some(2)));
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_on_a_route_gives_its_verdict_and_no_report() {
    let judge = Scripted::new([answer("{\"outcome\": \"allow\"}")]);
    let tool = Write::default();
    let world = World::of(
        builder(Scripted::new([ask("write", &["a"]), answer("Written.")]))
            .model("key", "judge", Arc::new(judge.clone()))
            .route("careful", ["key/judge"], Patient)
            .route_report("careful", required())
            .tool(tool.clone())
            .tool_policy("write", Policy::Review)
            .review_with("route/careful"),
    );
    let (lines, _) = run(&world, StartTurn::new("write").conversation("c")).await;
    assert!(lines.contains(&"review-completed a allowed 1".to_owned()), "{lines:?}");
    assert_eq!((tool.ran(), judge.calls()), (vec!["a".to_owned()], 1));
    assert!(judge.requests()[0].tools.is_empty(), "{:?}", judge.requests()[0].tools);
}
