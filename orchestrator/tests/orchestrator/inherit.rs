//! Turns that repeat another one, or follow it from the queue: what they take over from its request.

use std::sync::Arc;

use everturn_orchestrator::{
    MemoryJournal, RetryTurn, StartTurn,
    kernel::{Arguments, FinishReason, Provider, Request, StreamEvent, ToolCall},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{CallerTool, Category, Chunk, Failure, Message, Parameters, RequiredReport, Role};
use futures_util::stream::BoxStream;
use serde_json::json;

use crate::support::{World, builder, text};

fn said(role: Role, text: &str) -> Message {
    let chunk = match role {
        Role::System => Chunk::System { text: text.into(), keeps_from: None },
        _ => Chunk::Text { text: text.into() },
    };
    Message::new(role, [chunk])
}

/// A request that sets everything.
fn full() -> StartTurn {
    let input_schema = json!({ "type": "object" });
    let tool = CallerTool { name: "weather".into(), description: "The weather.".into(), input_schema };
    let parameters =
        Parameters { temperature: Some(0.5), max_output_tokens: Some(9), ..Parameters::default() };
    let mut start = StartTurn::over(vec![said(Role::System, "Be brief."), said(Role::User, "hi")])
        .conversation("c")
        .tools(vec![tool])
        .parameters(parameters)
        .final_report(RequiredReport::new(json!({ "type": "object" })));
    start.reasoning_effort = Some("high".into());
    start
}

fn reports() -> Vec<Cue> {
    let arguments = Arguments::Parsed(json!({}));
    let call = ToolCall { id: "r".into(), name: "final_report".into(), arguments, echo: None };
    vec![StreamEvent::ToolCall(call).into(), StreamEvent::Finished(FinishReason::ToolCalls).into()]
}

fn fails() -> Vec<Cue> {
    vec![StreamEvent::Failed(Failure::new(Category::Auth, false, "HTTP 401")).into()]
}

/// What a request says besides the conversation.
fn settings(request: &Request) -> impl PartialEq + std::fmt::Debug + use<> {
    let system = request.messages.iter().find(|message| message.role == Role::System).cloned();
    let Request { tools, parameters, max_output_tokens, reasoning_effort, .. } = request.clone();
    (system, tools, parameters, max_output_tokens, reasoning_effort)
}

/// Asserts that the last request has the settings of the first.
fn assert_alike(provider: &Scripted, calls: usize) {
    let requests = provider.requests();
    assert_eq!(requests.len(), calls);
    let names = requests[0].tools.iter().map(|tool| tool.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["weather", "final_report"]);
    assert_eq!(settings(requests.last().unwrap()), settings(&requests[0]));
}

async fn run(world: &World, start: StartTurn) -> everturn_wire::TurnId {
    let started = world.orchestrator.start(start).await.unwrap();
    world.watch(Some(started.from)).await.turn().await;
    started.turn_id
}

async fn again(world: &World, what: RetryTurn) {
    let started = world.orchestrator.retry_with(&world.id, what).await.unwrap();
    let lines = world.watch(Some(started.from)).await.turn().await;
    assert!(lines.iter().any(|line| line.starts_with("final-report")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_tried_again_has_the_settings_of_its_request() {
    let provider = Scripted::new([fails(), reports()]).once();
    let world = World::new(provider.clone());
    let failed = run(&world, full()).await;
    again(&world, RetryTurn::last(failed)).await;
    assert_alike(&provider, 2);
    let turns = world.orchestrator.metrics(&world.id).await.unwrap();
    assert!(turns.iter().all(|turn| turn.request.is_none()), "they are not shown: {turns:?}");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_message_is_answered_again_with_the_settings_of_its_turn_also_after_a_restart() {
    let (provider, journal) =
        (Scripted::new([reports(), reports(), reports(), reports()]).once(), Arc::new(MemoryJournal::new()));
    let world = World::of(builder(provider.clone()).journal(journal.clone()));
    run(&world, full()).await;
    run(&world, world.message("plain").final_report(RequiredReport::new(json!({ "type": "object" })))).await;
    world.orchestrator.shutdown(std::time::Duration::ZERO).await;
    let world = World { id: world.id.clone(), ..World::of(builder(provider.clone()).journal(journal)) };
    again(&world, RetryTurn::message(1)).await;
    assert_alike(&provider, 3);
    again(&world, RetryTurn::message(1).text("hello")).await;
    assert_alike(&provider, 4);
}

#[tokio::test(start_paused = true)]
async fn a_queued_message_has_the_settings_of_the_turn_that_it_waited_for() {
    let provider = Scripted::new([vec![text("hel"), Cue::Hang], reports()]).once();
    let world = World::new(provider.clone());
    let started = world.orchestrator.start(full()).await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    watcher.until("text-delta").await;
    assert!(!world.enqueue("next").await);
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    watcher.until("turn-sealed").await;
    assert_alike(&provider, 2);
}

/// A model that takes no parameters.
struct Plain(Scripted);

impl Provider for Plain {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        self.0.stream(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_lacks_a_parameter_of_the_request_is_refused_by_name() {
    let plain = Scripted::new([reports()]).once();
    let world =
        World::of(builder(Scripted::new([fails()])).model("p", "plain", Arc::new(Plain(plain.clone()))));
    let failed = run(&world, full()).await;
    let error = world.orchestrator.retry_with(&world.id, RetryTurn::last(failed).model("p/plain")).await;
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "p/plain does not support temperature: leave it out, or choose another model");
    assert_eq!(plain.calls(), 0);
}
