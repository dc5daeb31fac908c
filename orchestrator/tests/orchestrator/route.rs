//! Turns on routes: which models are asked, when, and what is shared between turns.

use std::sync::Arc;

use everturn_orchestrator::{
    Builder, Clock as _, Cycling, Exponential, MemoryState, Orchestrator, Patient, StartTurn, StateStore,
    SystemClock, kernel::StreamEvent,
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Category, ConversationId, Failure, TargetState};
use tokio::time::Instant;

use crate::support::{World, answer, ms_since, refused_with_hint};

/// A call that fails for good.
fn unauthorized() -> Vec<Cue> {
    vec![StreamEvent::Failed(Failure::new(Category::Auth, false, "HTTP 401: who are you?")).into()]
}

/// Models `a/m`, `b/m` and so on, each with its script.
fn models(scripts: &[&Scripted]) -> Builder {
    let named = ["a", "b", "c"].into_iter().zip(scripts);
    named.fold(Orchestrator::builder(), |builder, (name, script)| {
        builder.model(name, "m", Arc::new((*script).clone()))
    })
}

/// What a turn on the route `r` tells in this conversation.
async fn say(world: &World, id: &str, route: &str) -> Vec<String> {
    let id = ConversationId::from(id);
    let start = StartTurn::new("hi").conversation(id.clone()).model(route);
    let started = world.orchestrator.start(start).await.unwrap();
    let subscription = world.orchestrator.subscribe(&id, Some(started.from), true).await.unwrap();
    crate::support::Watcher { subscription }.until("turn-sealed").await
}

fn calls(scripts: &[&Scripted]) -> Vec<usize> {
    scripts.iter().map(|script| script.calls()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_route_is_offered_like_a_model_and_asks_the_next_target_at_once() {
    let scripts = [
        &Scripted::new([refused_with_hint(20_000)]),
        &Scripted::new([unauthorized()]),
        &Scripted::new([answer("hello")]),
    ];
    let world = World::of(models(&scripts).route("r", ["a/m", "b/m", "c/m"], Exponential::interactive()));
    assert_eq!(world.orchestrator.models(), ["a/m", "b/m", "c/m", "route/r"]);
    let (begun, told) = (Instant::now(), say(&world, "c", "route/r").await);
    let expected = [
        "user-message hi",
        "turn-start",
        "target-switched a/m is rate limited",
        "provider-retry 0 0 HTTP 429: busy",
        "status active asking",
        "target-switched b/m refused the credential",
        "provider-retry 1 0 HTTP 401: who are you?",
        "status active asking",
        "retry-ended 2 recovered",
        "text-delta hello",
        "step-complete",
        "done stop",
        "turn-sealed",
    ];
    assert_eq!(told, expected);
    assert_eq!((calls(&scripts), ms_since(begun)), (vec![1, 1, 1], 0));
    assert_eq!(scripts[2].requests()[0].model, "m");
    // The next turn of the conversation takes the same route.
    let told = world.say("again").await.turn().await;
    assert!(told.contains(&"text-delta hello".to_owned()), "{told:?}");
    assert_eq!(calls(&scripts), [1, 1, 2], "what is known of a and b keeps it from asking them");
}

#[tokio::test(start_paused = true)]
async fn what_one_turn_learns_of_a_target_another_turn_knows() {
    let scripts = [
        &Scripted::new([refused_with_hint(60_000), answer("a")]),
        &Scripted::new([answer("b"), refused_with_hint(60_000), answer("b")]),
        &Scripted::new([answer("c")]),
    ];
    let builder = models(&scripts).route("ab", ["a/m", "b/m"], Exponential::interactive()).route(
        "bac",
        ["b/m", "a/m", "c/m"],
        Exponential::interactive(),
    );
    let world = World::of(builder);
    say(&world, "one", "route/ab").await;
    assert_eq!(calls(&scripts), [1, 1, 0]);
    let told = say(&world, "two", "route/bac").await;
    assert!(told.contains(&"text-delta c".to_owned()), "a is known to be limited: {told:?}");
    assert_eq!(calls(&scripts), [1, 2, 1]);
    // An answer clears what was known against its target.
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    say(&world, "three", "route/ab").await;
    assert_eq!(calls(&scripts), [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_patient_route_parks_until_the_first_target_is_free() {
    let scripts = [
        &Scripted::new([refused_with_hint(100_000), answer("hello")]),
        &Scripted::new([refused_with_hint(200_000)]),
    ];
    let world = World::of(models(&scripts).route("r", ["a/m", "b/m"], Patient));
    let (begun, told) = (Instant::now(), say(&world, "c", "route/r").await);
    assert!(told.contains(&"text-delta hello".to_owned()), "{told:?}");
    assert_eq!((calls(&scripts), ms_since(begun)), (vec![2, 1], 100_000));
}

#[tokio::test(start_paused = true)]
async fn a_cycling_route_asks_as_often_as_it_may() {
    let scripts = [&Scripted::new([refused_with_hint(2_000)]), &Scripted::new([refused_with_hint(5_000)])];
    let rule = Cycling { max_attempts: 5, ..Cycling::default() };
    let world = World::of(models(&scripts).route("r", ["a/m", "b/m"], rule));
    let (begun, told) = (Instant::now(), say(&world, "c", "route/r").await);
    assert!(told.contains(&"retry-ended 4 exhausted".to_owned()), "{told:?}");
    assert_eq!((calls(&scripts), ms_since(begun)), (vec![3, 2], 10_000));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_not_there_counts_as_failed_for_good() {
    let scripts = [&Scripted::new([answer("hello")])];
    let world = World::of(models(&scripts).route("r", ["gone/m", "a/m"], Exponential::interactive()));
    let told = say(&world, "c", "route/r").await;
    let gone = "provider-retry 0 0 the model gone/m of this route is not configured";
    assert!(told.contains(&gone.to_owned()), "{told:?}");
    assert!(told.contains(&"target-switched gone/m does not have the model".to_owned()), "{told:?}");
    assert_eq!(calls(&scripts), [1]);
}

#[tokio::test(start_paused = true)]
async fn where_retrying_is_off_no_other_target_is_asked() {
    let scripts = [&Scripted::new([refused_with_hint(2_000)]), &Scripted::new([answer("hello")])];
    let world = World::of(models(&scripts).route("r", ["a/m", "b/m"], Exponential::interactive()));
    world.orchestrator.set_auto_retry(None, false).await.unwrap();
    let told = say(&world, "c", "route/r").await;
    assert!(told.contains(&"error HTTP 429: busy".to_owned()), "{told:?}");
    assert_eq!(calls(&scripts), [1, 0]);
}

/// The first credential has reached its usage limit.
fn used_up(hint_ms: u64) -> Vec<Cue> {
    let failure = Failure::new(Category::QuotaExhausted, true, "HTTP 429: usage limit reached");
    vec![StreamEvent::Failed(Failure { hint_ms: Some(hint_ms), ..failure }).into()]
}

#[tokio::test(start_paused = true)]
async fn a_model_with_several_credentials_goes_on_with_the_next_one() {
    let scripts =
        [Scripted::new([used_up(40_000), answer("first")]), Scripted::new([answer("one"), answer("two")])];
    let builder = Orchestrator::builder().model("work", "m", Arc::new(scripts[0].clone())).credential(
        "work/m",
        "home",
        Arc::new(scripts[1].clone()),
    );
    let world = World::of(builder);
    assert_eq!(world.orchestrator.models(), ["work/m"], "a credential is no model of its own");
    let begun = Instant::now();
    let told = say(&world, "c", "work/m").await;
    assert!(told.contains(&"target-switched work/m has reached its usage limit".to_owned()), "{told:?}");
    assert!(told.contains(&"text-delta one".to_owned()), "{told:?}");
    // Another turn knows, and does not ask the first credential before its time.
    let told = say(&world, "d", "work/m").await;
    assert!(told.contains(&"target-switched work/m is not available".to_owned()), "{told:?}");
    assert!(told.contains(&"text-delta two".to_owned()), "{told:?}");
    assert_eq!((scripts[0].calls(), scripts[1].calls(), ms_since(begun)), (1, 2, 0));
    tokio::time::advance(std::time::Duration::from_secs(40)).await;
    let told = say(&world, "e", "work/m").await;
    assert!(told.contains(&"text-delta first".to_owned()), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_route_asks_all_credentials_of_a_model_before_the_next_one() {
    let scripts = [
        Scripted::new([used_up(90_000)]),
        Scripted::new([used_up(40_000)]),
        Scripted::new([answer("other")]),
    ];
    let builder = Orchestrator::builder()
        .model("work", "m", Arc::new(scripts[0].clone()))
        .credential("work/m", "home", Arc::new(scripts[1].clone()))
        .model("b", "m", Arc::new(scripts[2].clone()))
        .route("r", ["work/m", "b/m"], Exponential::interactive())
        .default_model("route/r");
    let world = World::of(builder);
    assert_eq!(world.orchestrator.models(), ["route/r", "work/m", "b/m"]);
    let told = world.say("hi").await.turn().await;
    assert!(told.contains(&"text-delta other".to_owned()), "{told:?}");
    assert_eq!(scripts.each_ref().map(Scripted::calls), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn the_next_process_knows_which_targets_are_not_free() {
    let store = Arc::new(MemoryState::new());
    let process = |scripts: &[&Scripted]| {
        let builder = models(scripts).route("ab", ["a/m", "b/m"], Exponential::interactive());
        World::of(builder.state(store.clone()))
    };
    let scripts = [&Scripted::new([refused_with_hint(60_000)]), &Scripted::new([answer("b")])];
    let first = process(&scripts);
    assert_eq!(first.orchestrator.resume().await.unwrap(), 0);
    say(&first, "one", "route/ab").await;
    assert_eq!(calls(&scripts), [1, 1]);
    drop(first);
    let second = process(&scripts);
    second.orchestrator.resume().await.unwrap();
    say(&second, "two", "route/ab").await;
    assert_eq!(calls(&scripts), [1, 2], "a is known to be limited");
    // What cannot be read costs no more than finding out again.
    store.write("health", "{\"models\": 1}".to_owned()).await.unwrap();
    let third = process(&scripts);
    third.orchestrator.resume().await.unwrap();
    say(&third, "three", "route/ab").await;
    assert_eq!(calls(&scripts), [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_key_is_asked_again_after_an_hour_or_when_something_changed() {
    let store = Arc::new(MemoryState::new());
    let process = |scripts: &[&Scripted]| {
        let builder = models(scripts).route("ab", ["a/m", "b/m"], Exponential::interactive());
        World::of(builder.state(store.clone()))
    };
    let scripts = [&Scripted::new([unauthorized()]), &Scripted::new([answer("b")])];
    let world = process(&scripts);
    world.orchestrator.resume().await.unwrap();
    for (minutes, asked) in [(0, 1), (1, 1), (58, 1), (1, 2), (59, 2)] {
        tokio::time::advance(std::time::Duration::from_secs(minutes * 60)).await;
        let told = say(&world, "c", "route/ab").await;
        assert!(told.contains(&"text-delta b".to_owned()), "{told:?}");
        assert_eq!(scripts[0].calls(), asked, "{minutes} minutes later");
    }
    world.orchestrator.set_auto_retry(None, true).await.unwrap();
    say(&world, "c", "route/ab").await;
    assert_eq!(scripts[0].calls(), 3, "settings were changed");
    drop(world);
    let world = process(&scripts);
    world.orchestrator.resume().await.unwrap();
    say(&world, "c2", "route/ab").await;
    assert_eq!(scripts[0].calls(), 4, "there was a restart");
}

#[tokio::test(start_paused = true)]
async fn targets_are_told_with_what_is_known_against_them() {
    let scripts = [
        Scripted::new([used_up(90_000)]),
        Scripted::new([refused_with_hint(20_000)]),
        Scripted::new([answer("other")]),
    ];
    let clock = SystemClock::new();
    let builder = Orchestrator::builder()
        .clock(Arc::new(clock))
        .model("work", "m", Arc::new(scripts[0].clone()))
        .model("b", "m", Arc::new(scripts[2].clone()))
        .credential("work/m", "home", Arc::new(scripts[1].clone()))
        .route("r", ["work/m", "b/m"], Exponential::interactive());
    let world = World::of(builder);
    let free = |name: &str| TargetState { target: name.to_owned(), until: None, category: None };
    assert_eq!(world.orchestrator.targets(), ["work/m", "b/m", "home/m"].map(free));
    let begun = clock.now();
    say(&world, "c", "route/r").await;
    let marked = |name, category, ms| {
        let until = Some(begun.plus(ms).0);
        TargetState { until, category: Some(category), ..free(name) }
    };
    let used_up = marked("work/m", Category::QuotaExhausted, 90_000);
    let limited = marked("home/m", Category::RateLimited, 20_000);
    assert_eq!(world.orchestrator.targets(), [used_up.clone(), free("b/m"), limited]);
    tokio::time::advance(std::time::Duration::from_secs(20)).await;
    assert_eq!(world.orchestrator.targets(), [used_up, free("b/m"), free("home/m")]);
}
