//! Models and routes that are replaced while turns run.

use std::sync::Arc;

use everturn_orchestrator::{Catalog, Error, Orchestrator};
use everturn_provider::{Cue, Scripted};

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, builder, refused},
};

fn one(name: &str, provider: &Scripted) -> Catalog {
    let mut catalog = Catalog::new();
    catalog.model("key", name, Arc::new(provider.clone()));
    catalog
}

fn scripted(calls: impl IntoIterator<Item = Vec<Cue>>) -> Scripted {
    Scripted::new(calls)
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_uses_the_new_provider_of_its_model() {
    let (old, new) = (scripted([refused()]), scripted([answer("hello")]));
    let world = World::new(old.clone());
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    world.orchestrator.offer(one("model", &new));
    assert!(watcher.turn().await.contains(&"done stop".to_owned()));
    assert_eq!((old.calls(), new.calls()), (1, 1));
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_model_is_removed_fails_at_its_next_call() {
    let (old, new) = (scripted([refused()]), scripted([answer("hello")]));
    let world = World::new(old.clone());
    // The wait is long enough for the turn to be parked.
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    world.orchestrator.offer(one("other", &new));
    let told = watcher.turn().await;
    assert!(told.contains(&"done error".to_owned()), "{told:?}");
    assert!(told.iter().any(|line| line.contains("key/model") && line.contains("configured")), "{told:?}");
    assert_eq!((old.calls(), new.calls()), (1, 0));
    // The conversation goes on with what there is.
    let mut next = world.say("again").await;
    assert!(next.turn().await.contains(&"text-delta hello".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn of_two_models_or_routes_with_one_id_the_later_counts() {
    let (first, second) = (scripted([]), scripted([answer("hello"), answer("hello"), answer("hello")]));
    let builder = Orchestrator::builder()
        .model("a", "x", Arc::new(first.clone()))
        .model("b", "y", Arc::new(scripted([])))
        .model("a", "x", Arc::new(second.clone()))
        .plain_route("r", ["b/y"])
        .plain_route("r", ["a/x"]);
    let world = World::of(builder);
    assert_eq!(world.orchestrator.models(), ["a/x", "b/y", "route/r"]);
    for model in ["a/x", "x", "route/r"] {
        let begun = world.orchestrator.start(world.message("hi").model(model)).await.unwrap();
        world.watch(Some(begun.from)).await.turn().await;
    }
    assert_eq!((first.calls(), second.calls()), (0, 3));
}

/// Returns a process without any model, whose predecessor ended while a turn waited.
async fn left_waiting() -> World {
    let storage = Storage::new(|_| Mishap::Nothing);
    let world = World::of(builder(scripted([refused()])).journal(storage.clone()));
    world.say("hi").await.until("provider-retry").await;
    World::of(Orchestrator::builder().journal(storage))
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_model_is_gone_fails_also_if_no_list_is_known_yet() {
    let (world, other) = (left_waiting().await, scripted([answer("hello")]));
    let mut catalog = Catalog::new();
    catalog.any_model("open", Arc::new(other.clone()));
    world.orchestrator.offer(catalog);
    world.orchestrator.resume().await.unwrap();
    let told = world.watch(None).await.turn().await;
    assert!(told.iter().any(|line| line.contains("key/model") && line.contains("configured")), "{told:?}");
    assert_eq!(other.calls(), 0);
}

/// As when a local server has nothing to offer yet.
#[tokio::test(start_paused = true)]
async fn a_turn_that_was_due_while_there_was_no_model_goes_on_when_there_is() {
    let (world, new) = (left_waiting().await, scripted([answer("hello")]));
    world.orchestrator.resume().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
    world.orchestrator.offer(one("model", &new));
    // Nobody opens the conversation.
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    assert_eq!(new.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_is_listed_with_its_default_and_routes() {
    let provider = scripted([answer("hello")]);
    let world = World::new(provider.clone());
    assert_eq!(world.orchestrator.models(), ["key/model"]);
    let mut catalog = one("a", &provider);
    catalog.model("key", "b", Arc::new(provider.clone()));
    catalog.credential("key/b", "key#2", Arc::new(provider.clone()));
    catalog.route("main", vec!["key/a".to_owned(), "key/b".to_owned()], None);
    catalog.default_model("key/b");
    world.orchestrator.offer(catalog);
    assert_eq!(world.orchestrator.models(), ["key/b", "key/a", "route/main"]);
    let targets: Vec<_> = world.orchestrator.targets().into_iter().map(|target| target.target).collect();
    assert_eq!(targets, ["key/a", "key/b", "key#2/b"]);
    let message = world.message("hi").model("route/main");
    world.orchestrator.start(message).await.unwrap();
    let gone = world.orchestrator.start(world.message("hi").model("key/model")).await;
    assert!(matches!(gone, Err(Error::UnknownModel { .. })), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn a_credential_without_a_list_takes_any_name() {
    let provider = scripted([answer("hello"), answer("again")]);
    let world = World::new(provider.clone());
    let mut catalog = one("listed", &provider);
    catalog.any_model("open", Arc::new(provider.clone()));
    world.orchestrator.offer(catalog);
    assert_eq!(world.orchestrator.models(), ["key/listed"], "it is not listed");
    let started = world.orchestrator.start(world.message("hi").model("open/any/thing")).await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    assert!(watcher.turn().await.contains(&"text-delta hello".to_owned()));
    assert_eq!(provider.requests().last().unwrap().model, "any/thing");
    // The conversation keeps it.
    let mut next = world.say("more").await;
    assert!(next.turn().await.contains(&"text-delta again".to_owned()));
    assert_eq!(provider.requests().last().unwrap().model, "any/thing");
    for name in ["open/", "open", "other/x", "key/x"] {
        let refused = world.orchestrator.start(world.message("hi").model(name)).await;
        assert!(matches!(refused, Err(Error::UnknownModel { .. })), "{name}: {refused:?}");
    }
}
