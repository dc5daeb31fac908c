//! Tool calls that wait for a person.

mod grant;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Builder, Cursor, Error, Invocation, Journal, JournalError, MemoryJournal, MemoryState, Policy, RetryTurn,
    StateStore, Tool, Wait,
    kernel::{Arguments, FinishReason, Millis, StreamEvent, ToolAnswer, ToolCall, ToolSpec},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{
    ApprovalAnswer, ApprovalMode, ApprovalRequest, ApprovalScope, Category, Chunk, ConversationStatus,
    Decider, Decision, Failure, Role, StepId, Verdict,
};
use futures_util::future;
use serde_json::json;
use tokio::{runtime::Handle, time::sleep};

use crate::support::{Watcher, World, answer, ask, builder, event, line};

/// Takes a path. Notes the ids of the calls that ran.
#[derive(Clone, Default)]
pub(crate) struct Write {
    ran: Arc<Mutex<Vec<String>>>,
}

impl Write {
    pub(crate) fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": ["object", "null"],
            "properties": { "path": { "type": "string" } },
        });
        ToolSpec { name: "write".to_owned(), description: "Writes.".to_owned(), parameters }
    }

    fn policy(&self) -> Policy {
        Policy::Ask
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        self.ran.lock().unwrap().push(call.call_id);
        ToolAnswer::ok("written")
    }
}

fn world(calls: &[Vec<Cue>], tool: &Write) -> World {
    World::of(builder(Scripted::new(calls.to_vec())).tool(tool.clone()))
}

/// The watcher sees the turn come to a wait for people.
async fn asked(watcher: &mut Watcher, id: &str) {
    watcher.until(&format!("approval-requested {id}")).await;
}

async fn pending(world: &World) -> Vec<ApprovalRequest> {
    world.orchestrator.approvals(&world.id).await.unwrap().pending
}

async fn allowed_tools(world: &World) -> Vec<String> {
    world.orchestrator.approvals(&world.id).await.unwrap().allowed_tools
}

fn reply(request: &ApprovalRequest, verdict: Verdict) -> ApprovalAnswer {
    ApprovalAnswer {
        turn_id: request.turn_id.clone(),
        step_id: request.step_id.clone(),
        tool_call_id: request.tool_call_id.clone(),
        verdict,
        scope: None,
        reason: None,
        name: None,
        via: None,
    }
}

async fn says(world: &World, answer: ApprovalAnswer) -> bool {
    world.orchestrator.answer_approval(&world.id, answer).await.unwrap()
}

/// Waits until the turn is parked: then nothing of it runs.
async fn parked(world: &World) {
    while world.status().await != ConversationStatus::Queued {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_weeks_and_runs_when_it_is_allowed() {
    let tool = Write::default();
    let world = world(&[ask("write", &["a"]), answer("ok")], &tool);
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    parked(&world).await;
    sleep(Duration::from_secs(20 * 24 * 3_600)).await;
    let asked = pending(&world).await;
    assert_eq!((asked.len(), asked[0].tool_name.as_str()), (1, "write"));
    assert_eq!(world.orchestrator.status(&world.id).await.unwrap().approvals, Some(asked.clone()));
    assert!(tool.ran().is_empty());
    assert!(says(&world, reply(&asked[0], Verdict::Allowed)).await);
    let lines = watcher.turn().await;
    let told = [
        "status active",
        "approval-resolved a allowed",
        "tool-result a written",
        "text-delta ok",
        "step-complete",
        "done stop",
        "status idle",
    ];
    for line in told {
        assert!(lines.iter().any(|told| told == line) || line == "status idle", "{line}: {lines:?}");
    }
    assert_eq!(tool.ran(), ["a"]);
    assert_eq!(pending(&world).await, []);
    assert_eq!(world.status().await, ConversationStatus::Idle);
}

#[tokio::test(start_paused = true)]
async fn who_knows_base_events_only_is_told_why_nothing_happens() {
    let tool = Write::default();
    let world = world(&[ask("write", &["a"]), answer("ok")], &tool);
    let started = world.start("hi").await.unwrap();
    let subscription = world.orchestrator.subscribe(&world.id, Some(started.from), false).await.unwrap();
    let mut watcher = Watcher { subscription };
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.starts_with("tool-output a This call waits for approval")) {
        lines.push(line(&event(&watcher.frame().await).body));
    }
    assert!(lines.contains(&"status queued".to_owned()), "{lines:?}");
    let asked = pending(&world).await;
    says(&world, reply(&asked[0], Verdict::Denied)).await;
    let rest = watcher.turn().await;
    assert!(rest.contains(&"status active".to_owned()), "{rest:?}");
    let unknown = lines.iter().chain(&rest).filter(|line| line.starts_with("approval"));
    assert_eq!(unknown.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_told_to_the_model_with_its_reason() {
    let tool = Write::default();
    let provider = Scripted::new([ask("write", &["a"]), answer("ok")]);
    let world = World::of(builder(provider.clone()).tool(tool.clone()));
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    let mut denial = reply(&pending(&world).await[0], Verdict::Denied);
    denial.reason = Some("use the other file".to_owned());
    assert!(says(&world, denial).await);
    watcher.turn().await;
    let history = world.history().await;
    assert_eq!(history[2], "tool-result a (tool failed: the user denied this call: use the other file)");
    assert!(format!("{:?}", provider.requests()[1]).contains("use the other file"));
    assert!(tool.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_late_second_misdirected_or_senseless_answer_changes_nothing() {
    let tool = Write::default();
    let world = world(&[ask("write", &["a"]), ask("write", &["a"]), answer("ok")], &tool);
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    let first = pending(&world).await[0].clone();
    let right = reply(&first, Verdict::Allowed);
    for wrong in [
        ApprovalAnswer { turn_id: "t-other".into(), ..right.clone() },
        ApprovalAnswer { step_id: StepId::new(&first.turn_id, 1), ..right.clone() },
        ApprovalAnswer { step_id: StepId::new(&"t-other".into(), 0), ..right.clone() },
        ApprovalAnswer { tool_call_id: "b".to_owned(), ..right.clone() },
    ] {
        assert!(!says(&world, wrong).await);
    }
    for senseless in [
        ApprovalAnswer { verdict: Verdict::TimedOut, ..right.clone() },
        ApprovalAnswer { scope: Some(ApprovalScope::Unknown), ..right.clone() },
        ApprovalAnswer { reason: Some("x".repeat(5_000)), ..right.clone() },
        ApprovalAnswer { name: Some("x".repeat(201)), ..right.clone() },
        ApprovalAnswer { via: Some("x".repeat(201)), ..right.clone() },
    ] {
        let refused = world.orchestrator.answer_approval(&world.id, senseless).await;
        assert!(matches!(refused, Err(Error::BadAnswer { .. })), "{refused:?}");
    }
    let longest = Some("x".repeat(200));
    assert!(says(&world, ApprovalAnswer { name: longest.clone(), via: longest, ..right.clone() }).await);
    asked(&mut watcher, "a").await;
    // The call of the next step has the same id: an answer to the first one is not for it.
    assert!(!says(&world, right).await);
    assert_eq!(tool.ran(), ["a"]);
    assert!(says(&world, reply(&pending(&world).await[0], Verdict::Denied)).await);
    watcher.turn().await;
    assert_eq!(tool.ran(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn of_many_answers_at_once_one_counts() {
    let tool = Write::default();
    let world = world(&[ask("write", &["a"]), answer("ok")], &tool);
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    parked(&world).await;
    let request = pending(&world).await[0].clone();
    let answers = (0..20).map(|at| {
        let verdict = if at % 2 == 0 { Verdict::Denied } else { Verdict::Allowed };
        says(&world, reply(&request, verdict))
    });
    let counted = future::join_all(answers).await.into_iter().filter(|counted| *counted).count();
    assert_eq!(counted, 1);
    watcher.turn().await;
    assert!(tool.ran().is_empty(), "the first answer was a denial");
}

#[tokio::test(start_paused = true)]
async fn other_calls_of_the_step_do_not_wait_and_one_by_one_is_answered() {
    let tool = Write::default();
    let world = world(&[ask("write", &["a", "b", "c"]), answer("ok")], &tool);
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "c").await;
    let requests = pending(&world).await;
    assert_eq!(requests.len(), 3);
    assert!(says(&world, reply(&requests[1], Verdict::Allowed)).await);
    watcher.until("tool-result b written").await;
    parked(&world).await;
    assert!(says(&world, reply(&requests[0], Verdict::Denied)).await);
    assert!(says(&world, reply(&requests[2], Verdict::Allowed)).await);
    watcher.turn().await;
    assert_eq!(tool.ran(), ["b", "c"]);
}

fn kept(
    calls: Vec<Vec<Cue>>,
    tool: &Write,
    journal: &Arc<MemoryJournal>,
    state: &Arc<MemoryState>,
) -> Builder {
    let (journal, state): (Arc<dyn Journal>, Arc<dyn StateStore>) = (journal.clone(), state.clone());
    builder(Scripted::new(calls)).tool(tool.clone()).journal(journal).state(state)
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_allowed_for_the_conversation_asks_no_more_until_it_is_revoked() {
    let (tool, journal, state) = (Write::default(), Arc::default(), Arc::default());
    let first = World::of(kept(
        vec![ask("write", &["a", "b"]), ask("write", &["c"]), answer("ok")],
        &tool,
        &journal,
        &state,
    ));
    let mut watcher = first.say("hi").await;
    asked(&mut watcher, "b").await;
    let request = pending(&first).await[0].clone();
    let scope = Some(ApprovalScope::Conversation);
    assert!(says(&first, ApprovalAnswer { scope, ..reply(&request, Verdict::Allowed) }).await);
    watcher.turn().await;
    assert_eq!(tool.ran(), ["a", "b", "c"], "the others do not wait for an answer of their own");
    assert_eq!(allowed_tools(&first).await, ["write"]);
    drop(first);
    // Another process, and another conversation.
    let next = World::of(kept(
        vec![ask("write", &["d"]), answer("ok"), ask("write", &["e"])],
        &tool,
        &journal,
        &state,
    ));
    next.say("again").await.turn().await;
    assert_eq!(tool.ran(), ["a", "b", "c", "d"]);
    assert!(next.orchestrator.revoke_tool(&next.id, "write").await.unwrap());
    assert!(!next.orchestrator.revoke_tool(&next.id, "write").await.unwrap());
    assert_eq!(allowed_tools(&next).await, Vec::<String>::new());
    asked(&mut next.say("once more").await, "e").await;
    let other = World { orchestrator: next.orchestrator.clone(), id: "other".into() };
    asked(&mut other.say("hi").await, "e").await;
    assert_eq!(allowed_tools(&other).await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_denies_nobody_can_allow() {
    let (tool, journal, state) = (Write::default(), Arc::default(), Arc::default());
    let first = World::of(kept(vec![ask("write", &["a"]), answer("ok")], &tool, &journal, &state));
    let mut watcher = first.say("hi").await;
    asked(&mut watcher, "a").await;
    let scope = Some(ApprovalScope::Conversation);
    says(&first, ApprovalAnswer { scope, ..reply(&pending(&first).await[0], Verdict::Allowed) }).await;
    watcher.turn().await;
    let denies = kept(vec![ask("write", &["b"]), answer("ok")], &tool, &journal, &state);
    let next = World::of(denies.tool_policy("wr*", Policy::Deny));
    next.say("again").await.turn().await;
    assert_eq!(tool.ran(), ["a"]);
    let denied = "tool-result b (tool failed: the tool \"write\" may not be used here)";
    assert!(next.history().await.contains(&denied.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_rule_goes_before_what_the_tool_says_of_itself() {
    let tool = Write::default();
    let provider = Scripted::new([ask("write", &["a"]), answer("ok")]);
    let world = World::of(builder(provider).tool(tool.clone()).tool_policy("write", Policy::Allow));
    world.say("hi").await.turn().await;
    assert_eq!(tool.ran(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_in_time_and_the_call_is_denied() {
    let tool = Write::default();
    let provider = Scripted::new([ask("write", &["a"]), answer("ok")]);
    let wait = Duration::from_secs(600);
    let world = World::of(builder(provider).tool(tool.clone()).approval_timeout(wait));
    let before = tokio::time::Instant::now();
    let mut watcher = world.say("hi").await;
    let lines = watcher.turn().await;
    assert!(lines.contains(&"approval-resolved a timed-out".to_owned()), "{lines:?}");
    let waited = before.elapsed();
    assert!(waited >= wait && waited < wait + Duration::from_secs(3), "{waited:?}");
    assert!(tool.ran().is_empty());
}

/// What is kept with the results of calls, by call.
async fn decisions(world: &World) -> Vec<(String, Vec<Decision>)> {
    let chunks = world.chunks().await;
    let results = chunks.iter().filter_map(|stored| match &*stored.chunk {
        Chunk::ToolResult { tool_call_id, decisions, .. } => Some((tool_call_id.clone(), decisions.clone())),
        _ => None,
    });
    results.collect()
}

#[tokio::test(start_paused = true)]
async fn who_allowed_a_call_or_what_denied_it_is_kept_also_where_nobody_was_asked() {
    let (tool, journal, state) = (Write::default(), Arc::default(), Arc::default());
    let calls =
        vec![ask("write", &["a"]), ask("write", &["b"]), answer("ok"), ask("write", &["c"]), answer("ok")];
    let world = World::of(kept(calls, &tool, &journal, &state));
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    let told = ApprovalAnswer {
        scope: Some(ApprovalScope::Conversation),
        name: Some("Ada".to_owned()),
        via: Some("page".to_owned()),
        ..reply(&pending(&world).await[0], Verdict::Allowed)
    };
    let too_long = ApprovalAnswer { name: Some("x".repeat(201)), ..told.clone() };
    let refused = world.orchestrator.answer_approval(&world.id, too_long).await;
    assert!(matches!(refused, Err(Error::BadAnswer { .. })), "{refused:?}");
    assert!(says(&world, told).await);
    watcher.turn().await;
    world.orchestrator.revoke_tool(&world.id, "write").await.unwrap();
    world.orchestrator.start(world.message("again").unattended()).await.unwrap();
    watcher.turn().await;
    let by = Decision::new;
    let ada = Decision {
        scope: Some(ApprovalScope::Conversation),
        name: Some("Ada".to_owned()),
        via: Some("page".to_owned()),
        ..by(Decider::Person, Verdict::Allowed)
    };
    let expected = [
        ("a".to_owned(), vec![ada]),
        ("b".to_owned(), vec![by(Decider::Grant, Verdict::Allowed)]),
        ("c".to_owned(), vec![by(Decider::Rule, Verdict::Denied)]),
    ];
    assert_eq!(decisions(&world).await, expected);
    assert_eq!(tool.ran(), ["a", "b"]);
}

/// The turn that is repeated said that nobody is there to answer.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_asked_again_asks_nobody_where_the_one_before_did_not() {
    let tool = Write::default();
    let fails = || vec![StreamEvent::Failed(Failure::new(Category::InvalidRequest, false, "no")).into()];
    let calls = vec![
        ask("write", &["a"]),
        fails(),
        ask("write", &["b"]),
        fails(),
        ask("write", &["c"]),
        answer("ok"),
        ask("write", &["d"]),
        answer("ok"),
        ask("write", &["e"]),
    ];
    let world = world(&calls, &tool);
    world.orchestrator.start(world.message("hi").unattended()).await.unwrap();
    let mut watcher = world.watch(Some(Cursor::default())).await;
    watcher.turn().await;
    let turn = world.orchestrator.metrics(&world.id).await.unwrap().pop().unwrap().turn_id;
    // Tried again, regenerated, edited: each as the one before it.
    for what in [RetryTurn::last(turn), RetryTurn::message(1), RetryTurn::message(1).text("hello")] {
        world.orchestrator.retry_with(&world.id, what).await.unwrap();
        let lines = watcher.turn().await;
        assert!(!lines.iter().any(|line| line.starts_with("approval-requested")), "{lines:?}");
        let refused = "nobody is there to give it";
        assert!(lines.iter().any(|line| line.contains(refused)), "{lines:?}");
    }
    let what = RetryTurn::message(1).approvals(ApprovalMode::Unknown);
    let refused = world.orchestrator.retry_with(&world.id, what).await;
    assert!(matches!(refused, Err(Error::BadRetry { .. })), "{refused:?}");
    let chunks = world.chunks().await;
    let edited = chunks.iter().rfind(|stored| stored.role == Role::User).unwrap().seq;
    let what = RetryTurn::message(edited).approvals(ApprovalMode::Ask);
    world.orchestrator.retry_with(&world.id, what).await.unwrap();
    asked(&mut watcher, "e").await;
    assert!(tool.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_turns_that_wait_for_people_have_no_task() {
    const TURNS: usize = 1_000;
    let tool = Write::default();
    // So long that each turn is seen while its model is silent.
    let calls = [Cue::Pause(Duration::from_secs(1))].into_iter().chain(ask("write", &["a"])).collect();
    let orchestrator = world(&[calls], &tool).orchestrator;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let turn = |number: usize| World {
        orchestrator: orchestrator.clone(),
        id: format!("c{number}").as_str().into(),
    };
    // The first one: what lasts for all of them is there, too.
    turn(0).start("hi").await.unwrap();
    parked(&turn(0)).await;
    sleep(Duration::from_secs(60)).await;
    let before = tasks();
    for number in 1..=TURNS {
        turn(number).start("hi").await.unwrap();
    }
    assert!(tasks() >= before + TURNS, "a turn that runs has a task: {} were {before}", tasks());
    for number in 1..=TURNS {
        parked(&turn(number)).await;
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(tasks(), before, "{TURNS} turns wait");
    let last = turn(TURNS);
    assert!(says(&last, reply(&pending(&last).await[0], Verdict::Denied)).await, "it waits");
}

#[tokio::test(start_paused = true)]
async fn a_request_outlives_its_process() {
    let (tool, journal, state) = (Write::default(), Arc::default(), Arc::default());
    let first = World::of(kept(vec![ask("write", &["a"])], &tool, &journal, &state));
    asked(&mut first.say("hi").await, "a").await;
    parked(&first).await;
    let before = pending(&first).await;
    drop(first);
    let unsealed = journal.unsealed(Millis(u64::MAX)).await.unwrap();
    assert_eq!(unsealed, [], "no moment ends the wait");
    let next = World::of(kept(vec![answer("ok")], &tool, &journal, &state));
    next.orchestrator.resume().await.unwrap();
    assert_eq!(pending(&next).await, before);
    assert_eq!(next.status().await, ConversationStatus::Queued);
    let mut watcher = next.watch(None).await;
    // Who comes late sees the turn from its start, the request included.
    asked(&mut watcher, "a").await;
    assert!(says(&next, reply(&before[0], Verdict::Allowed)).await);
    watcher.turn().await;
    assert_eq!(tool.ran(), ["a"]);
    assert_eq!(next.history().await, ["text hi", "tool-call a", "tool-result a written", "text ok"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_and_a_queued_message_reach_a_turn_that_waits() {
    let tool = Write::default();
    let world = world(&[ask("write", &["a"]), answer("ok")], &tool);
    let mut watcher = world.say("hi").await;
    asked(&mut watcher, "a").await;
    parked(&world).await;
    assert!(!world.enqueue("and then").await);
    assert_eq!(world.status().await, ConversationStatus::Queued, "it still waits");
    assert_eq!(pending(&world).await.len(), 1);
    assert!(world.stop().await);
    let lines = watcher.turn().await;
    assert!(lines.contains(&"approval-resolved a cancelled".to_owned()), "{lines:?}");
    assert!(lines.contains(&"done aborted".to_owned()));
    let lines = watcher.turn().await;
    assert!(
        lines.contains(&"user-message and then".to_owned()) && lines.contains(&"text-delta ok".to_owned())
    );
    assert!(tool.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_nobody_attends_denies_what_would_ask() {
    let tool = Write::default();
    let world = world(&[ask("write", &["a"]), answer("ok")], &tool);
    let started = world.orchestrator.start(world.message("hi").unattended()).await.unwrap();
    world.watch(Some(started.from)).await.turn().await;
    let history = world.history().await;
    let denied =
        "tool-result a (tool failed: the tool \"write\" needs approval, and nobody is there to give it)";
    assert_eq!(history[2], denied);
    assert!(tool.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_ask_nobody() {
    let call = |arguments| {
        let call = ToolCall { id: "a".to_owned(), name: "write".to_owned(), arguments, echo: None };
        vec![StreamEvent::ToolCall(call).into(), StreamEvent::Finished(FinishReason::ToolCalls).into()]
    };
    let tool = Write::default();
    let world = world(&[call(Arguments::Parsed(json!({ "path": 7 }))), answer("ok")], &tool);
    let lines = world.say("hi").await.turn().await;
    assert_eq!(lines.iter().filter(|line| line.starts_with("approval")).count(), 0);
    let result = &world.history().await[2];
    assert!(
        result.contains("do not fit the schema of \"write\": /path: want string, but got number"),
        "{result}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_the_request_as_it_is() {
    let (tool, journal, state) = (Write::default(), Arc::default(), Arc::default());
    let first = World::of(kept(vec![ask("write", &["a"])], &tool, &journal, &state));
    asked(&mut first.say("hi").await, "a").await;
    parked(&first).await;
    let request = pending(&first).await[0].clone();
    first.orchestrator.shutdown(Duration::from_secs(2)).await;
    let refused = first.orchestrator.answer_approval(&first.id, reply(&request, Verdict::Allowed)).await;
    assert!(matches!(refused, Err(Error::ShuttingDown)), "{refused:?}");
    let stored = journal.load(&first.id).await.unwrap().unwrap();
    assert_eq!(stored.turn.map(|turn| turn.wait), Some(Wait::Person { until: None }));
}
