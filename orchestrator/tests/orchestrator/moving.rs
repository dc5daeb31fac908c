//! A person moves a turn that waits to another model or route.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{
    Builder, Error, Exponential, MemoryJournal, Orchestrator, RetryTurn,
    kernel::{Silence, StreamEvent},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{DoneReason, Parameters, TurnMetrics};
use tokio::time::{Instant, sleep};

use crate::{
    again::Noting,
    request::Silent,
    support::{World, answer, ask, event, ms_since, refused, refused_with_hint, text},
};

fn models(a: &Noting, b: &Noting) -> Builder {
    Orchestrator::builder().model("a", "m", Arc::new(a.clone())).model("b", "m", Arc::new(b.clone()))
}

fn limited() -> Vec<Cue> {
    refused_with_hint(60_000)
}

async fn turns(world: &World) -> Vec<TurnMetrics> {
    world.orchestrator.metrics(&world.id).await.unwrap()
}

async fn go_to(world: &World, model: &str) -> bool {
    world.orchestrator.retry_now_with(&world.id, model).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_turn_on_a_route_goes_to_the_target_that_was_chosen_and_stays_with_it() {
    let (a, b) = (Noting::new([limited()]), Noting::new([limited(), ask("gone", &["t"]), answer("from b")]));
    let world = World::of(models(&a, &b).route("r", ["b/m", "a/m"], Exponential::interactive()));
    let started = world.orchestrator.start(world.message("hi").model("route/r")).await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    watcher.until("target-switched").await;
    watcher.until("provider-retry 1 60000").await;
    let begun = Instant::now();
    assert!(go_to(&world, "b/m").await);
    let lines = watcher.turn().await;
    assert_eq!(lines[..2], ["target-switched chosen by a person", "status active asking"], "{lines:?}");
    assert!(lines.contains(&"text-delta from b".to_owned()), "{lines:?}");
    assert_eq!(ms_since(begun), 0, "nothing is waited for");
    assert_eq!(turns(&world).await.len(), 1, "it is the same turn");
}

#[tokio::test(start_paused = true)]
async fn a_turn_on_one_model_makes_way_for_one_with_another_in_one_commit() {
    let (a, b) =
        (Noting::new([refused(), answer("from a")]), Noting::new([answer("from b"), answer("more")]));
    let world = World::of(models(&a, &b));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    // Long enough to be parked.
    sleep(Duration::from_secs(1)).await;
    assert!(go_to(&world, "b/m").await);
    let lines = watcher.until("turn-start").await;
    assert_eq!(lines, ["retry-ended 0 cancelled", "done aborted", "turn-sealed", "turn-start"]);
    let lines = watcher.turn().await;
    assert_eq!(lines, ["text-delta from b", "step-complete", "done stop", "turn-sealed"]);
    let turns = turns(&world).await;
    assert_eq!(
        (turns[0].reason.as_ref(), turns[0].model.as_deref()),
        (Some(&DoneReason::Aborted), Some("a/m"))
    );
    assert_eq!(turns[1].retry_of.as_ref(), Some(&turns[0].turn_id));
    assert_eq!(turns[1].model.as_deref(), Some("b/m"));
    assert_eq!(world.history().await, ["text hi", "text from b"], "the question is there once");
    world.say("more").await.turn().await;
    assert_eq!(b.last(), ["User hi", "Assistant from b", "User more"], "the conversation stays with it");
}

#[tokio::test(start_paused = true)]
async fn between_a_turn_and_its_successor_nobody_gets_in() {
    let (a, b) = (Noting::new([refused()]), Noting::new([vec![text("x"), Cue::Hang]]));
    let world = World::of(models(&a, &b));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    assert!(go_to(&world, "b/m").await);
    watcher.until("turn-sealed").await;
    let started = world.start("me first").await;
    assert_eq!(started.unwrap_err(), Error::Busy { id: world.id.clone() });
    watcher.until("text-delta x").await;
    assert!(world.stop().await);
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_the_queue_goes_along() {
    let (a, b) = (Noting::new([refused()]), Noting::new([ask("gone", &["t"]), answer("done")]));
    let world = World::of(models(&a, &b));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    for text in ["one", "two"] {
        assert!(!world.enqueue(text).await);
    }
    assert!(go_to(&world, "b/m").await);
    watcher.until("turn-sealed").await;
    watcher.until("queue-changed one two").await;
    let lines = watcher.turn().await;
    let told = |line: &str| lines.contains(&line.to_owned());
    assert!(told("steering one") && told("steering two"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_answers_again_is_still_to_replace_the_same() {
    let (a, b) =
        (Noting::new([answer("A1"), answer("A2"), refused()]), Noting::new([answer("B1"), answer("B3")]));
    let world = World::of(models(&a, &b));
    for question in ["Q1", "Q2"] {
        world.say(question).await.turn().await;
    }
    let started = world.orchestrator.retry_with(&world.id, RetryTurn::message(1)).await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    watcher.until("provider-retry").await;
    assert!(go_to(&world, "b/m").await);
    watcher.until("turn-sealed").await;
    let start = event(&watcher.frame().await);
    assert_eq!(serde_json::to_value(start).unwrap()["supersedes"], 2);
    watcher.until("turn-sealed").await;
    assert_eq!(b.last(), ["User Q1"]);
    world.say("Q3").await.turn().await;
    assert_eq!(b.last(), ["User Q1", "Assistant B1", "User Q3"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_successor_goes_on() {
    let journal = Arc::new(MemoryJournal::new());
    let process = |a: &Noting, b: &Noting| World::of(models(a, b).journal(journal.clone()));
    let (a, b) = (Noting::new([refused()]), Noting::new([vec![text("half"), Cue::Hang]]));
    let world = process(&a, &b);
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    assert!(go_to(&world, "b/m").await);
    watcher.until("text-delta half").await;
    drop((watcher, world));
    let (a, b) = (Noting::new([answer("from a")]), Noting::new([answer("from b")]));
    let world = process(&a, &b);
    assert_eq!(world.orchestrator.resume().await.unwrap(), 1);
    let lines = world.watch(None).await.turn().await;
    assert!(lines.contains(&"text-delta from b".to_owned()), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_provider_is_left() {
    let silence = Silence { silent_ms: 20_000, left_ms: None, alive: false };
    let silent = vec![Cue::from(StreamEvent::Silent(silence)), Cue::Hang];
    let (a, b) = (Noting::new([silent]), Noting::new([answer("from b")]));
    let world = World::of(models(&a, &b));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-silent").await;
    assert!(go_to(&world, "b/m").await);
    watcher.until("turn-sealed").await;
    assert!(watcher.turn().await.contains(&"text-delta from b".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_model_that_is_waited_for_is_asked_at_once() {
    let (a, b) = (Noting::new([refused(), answer("from a")]), Noting::new([answer("from b")]));
    let world = World::of(models(&a, &b));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    assert!(go_to(&world, "a/m").await);
    assert!(watcher.turn().await.contains(&"text-delta from a".to_owned()));
    assert_eq!(turns(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_models_own_name_finds_it_among_the_targets_of_the_turn() {
    let (a, b) = (Noting::new([limited()]), Noting::new([limited(), answer("from b")]));
    let builder = Orchestrator::builder().model("a", "one", Arc::new(a)).model("b", "two", Arc::new(b));
    let world = World::of(builder.route("r", ["a/one", "b/two"], Exponential::interactive()));
    let started = world.orchestrator.start(world.message("hi").model("route/r")).await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    watcher.until("target-switched").await;
    watcher.until("provider-retry 1 60000").await;
    assert!(go_to(&world, "two").await);
    assert!(watcher.turn().await.contains(&"text-delta from b".to_owned()));
    assert_eq!(turns(&world).await.len(), 1, "it is the same turn");
}

#[tokio::test(start_paused = true)]
async fn where_nothing_waits_nothing_moves() {
    let a = Scripted::new([vec![text("x"), Cue::Hang]]);
    let world = World::of(Orchestrator::builder().model("a", "m", Arc::new(a)));
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    assert!(!go_to(&world, "a/m").await);
    let unknown = world.orchestrator.retry_now_with(&world.id, "c/m").await.unwrap_err();
    assert!(matches!(unknown, Error::UnknownModel { .. }), "{unknown}");
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    assert!(!go_to(&world, "a/m").await, "there is no turn");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_lacks_a_parameter_of_the_request_is_refused_at_once() {
    for wait in [1_000, 60_000] {
        let (able, unable) = (
            Scripted::new([refused_with_hint(wait), answer("hello")]),
            Silent(Scripted::new([answer("never")])),
        );
        let builder =
            Orchestrator::builder().model("a", "m", Arc::new(able)).model("b", "m", Arc::new(unable));
        let world = World::of(builder);
        let warm = Parameters { temperature: Some(0.5), ..Parameters::default() };
        let started = world.orchestrator.start(world.message("hi").parameters(warm)).await.unwrap();
        let mut watcher = world.watch(Some(started.from)).await;
        watcher.until("provider-retry").await;
        let refused = world.orchestrator.retry_now_with(&world.id, "b/m").await.unwrap_err();
        assert!(refused.to_string().contains("b/m does not support temperature"), "{refused}");
        assert!(watcher.turn().await.contains(&"text-delta hello".to_owned()), "the turn waits on");
    }
}
