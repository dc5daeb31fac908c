//! What a conversation sets for its model: which turns use it, and what goes before it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_orchestrator::{
    Error, Journal, MemoryJournal, MemoryState, RetryTurn, StateStore, kernel::Request,
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Category, Chunk, Failure, ModelSettings, Parameters, Role, ToolChoice};

use tokio::{sync::Semaphore, time::timeout};

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, builder},
};

fn settings(prompt: &str) -> ModelSettings {
    ModelSettings {
        system_prompt: Some(prompt.to_owned()),
        temperature: Some(0.5),
        max_output_tokens: Some(7),
        reasoning_effort: Some("low".to_owned()),
    }
}

/// What a request says besides the conversation: system prompt, temperature, maximum, effort.
type Said = (Option<String>, Option<f64>, Option<u32>, Option<String>);

fn said(request: &Request) -> Said {
    let system = request.messages.iter().find(|message| message.role == Role::System);
    let system = system.and_then(|message| match message.iter().next() {
        Some(Chunk::Text { text } | Chunk::System { text, .. }) => Some(text.clone()),
        _ => None,
    });
    (system, request.parameters.temperature, request.max_output_tokens, request.reasoning_effort.clone())
}

fn all(prompt: &str) -> Said {
    (Some(prompt.to_owned()), Some(0.5), Some(7), Some("low".to_owned()))
}

async fn turn(world: &World, text: &str) {
    world.say(text).await.until("turn-sealed").await;
}

#[tokio::test]
async fn turns_use_them_from_the_next_on_and_a_message_goes_before_them() {
    let provider = Scripted::new((0..5).map(|_| answer("hello")));
    let world = World::of(builder(provider.clone()).system_prompt("configured").max_output_tokens(99));
    turn(&world, "one").await;
    world.orchestrator.set_model_settings(&world.id, settings("own")).await.unwrap();
    turn(&world, "two").await;
    let parameters = Parameters { temperature: Some(1.0), ..Parameters::default() };
    let message = world.message("three").parameters(parameters).reasoning_effort("high");
    let started = world.orchestrator.start(message).await.unwrap();
    world.watch(Some(started.from)).await.until("turn-sealed").await;
    let blank = ModelSettings { system_prompt: Some(" ".to_owned()), ..ModelSettings::default() };
    let set = world.orchestrator.set_model_settings(&world.id, blank).await.unwrap();
    assert!(set.is_empty());
    turn(&world, "four").await;
    let requests: Vec<Said> = provider.requests().iter().map(said).collect();
    let configured = (Some("configured".to_owned()), None, Some(99), None);
    let of_message = (Some("own".to_owned()), Some(1.0), Some(7), Some("high".to_owned()));
    assert_eq!(requests, [configured.clone(), all("own"), of_message, configured]);
}

#[tokio::test]
async fn a_message_that_is_refused_sets_nothing() {
    let world = World::new(Scripted::new([answer("hello"), vec![Cue::Hang]]));
    turn(&world, "zero").await;
    let mut second = world.message("two");
    second.model_settings = Some(settings("second"));
    let without_tools = Parameters { tool_choice: Some(ToolChoice::Required), ..Parameters::default() };
    let refused = world.orchestrator.start(second.clone().parameters(without_tools)).await;
    assert!(matches!(refused, Err(Error::BadMessage { .. })), "{refused:?}");
    assert!(world.orchestrator.model_settings(&world.id).await.unwrap().is_empty());
    world.orchestrator.start(world.message("one")).await.unwrap();
    assert!(matches!(world.orchestrator.start(second).await, Err(Error::Busy { .. })));
    assert!(world.orchestrator.model_settings(&world.id).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_turn_cannot_be_saved_sets_nothing_and_one_whose_client_leaves_sets_all() {
    let (gate, plan) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Mishap::Nothing)));
    let of_test = plan.clone();
    let storage = Storage::new(move |_| of_test.lock().unwrap().clone());
    let world = World::of(builder(Scripted::new([answer("hello")])).journal(storage));
    turn(&world, "zero").await;
    let mut setting = world.message("one");
    setting.model_settings = Some(settings("own"));
    *plan.lock().unwrap() = Mishap::Fails;
    world.orchestrator.start(setting.clone()).await.unwrap_err();
    assert!(world.orchestrator.model_settings(&world.id).await.unwrap().is_empty());
    *plan.lock().unwrap() = Mishap::Waits(gate.clone());
    let mut watcher = world.watch(None).await;
    let left = timeout(Duration::from_secs(60), world.orchestrator.start(setting)).await;
    assert!(left.is_err(), "the client leaves before the turn is saved");
    *plan.lock().unwrap() = Mishap::Nothing;
    gate.add_permits(1);
    watcher.until("turn-sealed").await;
    assert_eq!(world.orchestrator.model_settings(&world.id).await.unwrap(), settings("own"));
}

#[tokio::test]
async fn a_turn_keeps_what_it_began_with_and_one_that_is_repeated_takes_the_new_ones() {
    let fails: Vec<Cue> = vec![
        everturn_orchestrator::kernel::StreamEvent::Failed(Failure::new(Category::Auth, false, "HTTP 401"))
            .into(),
    ];
    let provider = Scripted::new([fails, answer("hello")]);
    let world = World::new(provider.clone());
    let mut first = world.message("one");
    first.model_settings = Some(settings("first"));
    let started = world.orchestrator.start(first).await.unwrap();
    world.watch(Some(started.from)).await.until("turn-sealed").await;
    world.orchestrator.set_model_settings(&world.id, settings("second")).await.unwrap();
    let mut what = RetryTurn::default();
    what.turn_id = Some(started.turn_id);
    let again = world.orchestrator.retry_with(&world.id, what).await.unwrap();
    world.watch(Some(again.from)).await.until("turn-sealed").await;
    let requests: Vec<Said> = provider.requests().iter().map(said).collect();
    assert_eq!(requests, [all("first"), all("second")]);
}

#[tokio::test]
async fn they_outlive_the_process_and_end_with_the_conversation() {
    let (journal, state) = (Arc::new(MemoryJournal::new()), Arc::new(MemoryState::new()));
    let of = |provider: &Scripted| {
        World::of(builder(provider.clone()).journal(journal.clone()).state(state.clone()))
    };
    let provider = Scripted::new((0..3).map(|_| answer("hello")));
    let world = of(&provider);
    turn(&world, "one").await;
    world.orchestrator.set_model_settings(&world.id, settings("own")).await.unwrap();
    drop(world);
    let world = of(&provider);
    turn(&world, "two").await;
    assert_eq!(said(&provider.requests()[1]), all("own"));
    assert_eq!(world.orchestrator.model_settings(&world.id).await.unwrap(), settings("own"));
    world.orchestrator.delete(&world.id).await.unwrap();
    assert!(journal.load(&world.id).await.unwrap().is_none());
    let name = format!("conversation/{}/model-settings", world.id);
    assert_eq!(state.read(&name).await.unwrap(), None);
}

#[tokio::test]
async fn what_is_out_of_range_or_of_no_conversation_is_refused() {
    let world = World::new(Scripted::new([answer("hello")]));
    let set = async |settings| world.orchestrator.set_model_settings(&world.id, settings).await;
    assert!(matches!(set(settings("own")).await, Err(Error::UnknownConversation { .. })));
    let hot = ModelSettings { temperature: Some(f64::NAN), ..ModelSettings::default() };
    assert!(matches!(set(hot.clone()).await, Err(Error::BadMessage { .. })));
    let mut message = world.message("one");
    message.model_settings = Some(hot);
    assert!(matches!(world.orchestrator.start(message).await, Err(Error::BadMessage { .. })));
}
