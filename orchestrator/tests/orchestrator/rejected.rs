//! A key that a provider rejected is not sent again in vain, also on a single model.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Catalog, RetryTurn, kernel::StreamEvent};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Category, Failure, TurnId, Value};

use crate::support::{World, answer};

fn fails(category: Category) -> Vec<Cue> {
    vec![StreamEvent::Failed(Failure::new(category, false, "HTTP 401: who are you?")).into()]
}

/// What a new turn tells of its failure, and its id.
async fn error(world: &World) -> (Value, TurnId) {
    let started = world.start("hi").await.unwrap();
    let frames = world.watch(Some(started.from)).await.frames().await;
    let told = frames.iter().map(|frame| serde_json::from_slice::<Value>(&frame.event()).unwrap());
    (told.into_iter().find(|event| event["type"] == "error").unwrap_or_default(), started.turn_id)
}

async fn advance(minutes: u64) {
    tokio::time::advance(Duration::from_secs(minutes * 60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_key_is_not_asked_again_within_an_hour() {
    let provider = Scripted::new([fails(Category::Auth)]);
    let world = World::new(provider.clone());
    for (minutes, asked) in [(0, 1), (1, 1), (58, 1), (1, 2), (59, 2), (1, 3)] {
        advance(minutes).await;
        let (told, _) = error(&world).await;
        assert_eq!(told["message"], "HTTP 401: who are you?", "the refusal is the provider's own");
        assert_eq!(provider.calls(), asked, "{minutes} minutes later");
    }
    // It is told as known from before.
    advance(5).await;
    let (told, _) = error(&world).await;
    let advice = told["advice"].as_str().unwrap_or_default();
    assert!(advice.contains("rejected 5 min ago") && advice.contains("not sent again for 55 min"), "{told}");
    let made: Vec<_> =
        world.orchestrator.metrics(&world.id).await.unwrap().iter().map(|turn| turn.provider_calls).collect();
    assert_eq!(made, [1, 0, 0, 1, 0, 1, 0].map(Some), "only calls that were made are counted");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_key_is_asked_again_once_something_changed() {
    let (old, new) = (Scripted::new([fails(Category::Auth)]), Scripted::new([answer("hello")]));
    let world = World::new(old.clone());
    error(&world).await;
    world.orchestrator.set_auto_retry(None, true).await.unwrap();
    let (_, failed) = error(&world).await;
    assert_eq!(old.calls(), 2, "settings were changed");
    let again = world.orchestrator.retry_with(&world.id, RetryTurn::last(failed)).await.unwrap();
    world.watch(Some(again.from)).await.turn().await;
    assert_eq!(old.calls(), 3, "a person tried again");
    let mut catalog = Catalog::new();
    catalog.model("key", "model", Arc::new(new.clone()));
    world.orchestrator.offer(catalog);
    assert!(world.say("hi").await.turn().await.contains(&"text-delta hello".to_owned()));
    assert_eq!((old.calls(), new.calls()), (3, 1), "the key was replaced");
}

#[tokio::test(start_paused = true)]
async fn only_a_rejected_key_is_remembered() {
    for category in [Category::Permission, Category::NotFound, Category::InvalidRequest] {
        let provider = Scripted::new([fails(category)]);
        let world = World::new(provider.clone());
        error(&world).await;
        error(&world).await;
        assert_eq!(provider.calls(), 2, "{category:?}");
    }
}
