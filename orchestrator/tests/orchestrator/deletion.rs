//! Renaming and deleting conversations, also while a turn runs.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_orchestrator::{Error, JournalError, MemoryState, Page, StateStore};
use everturn_provider::Scripted;
use everturn_wire::{ConversationStatus, ConversationSummary, EventBody, ModelSettings};
use tokio::time::sleep;

use crate::support::{World, answer, builder, event, overloaded_with_hint};

async fn list(world: &World) -> Vec<ConversationSummary> {
    world.orchestrator.conversations(Page::default()).await.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_deleted_conversation_is_gone_with_everything_in_it() {
    let world = World::new(Scripted::new([answer("hello"), answer("again")]));
    world.say("hi").await.until("turn-sealed").await;
    world.orchestrator.set_auto_retry(Some(&world.id), false).await.unwrap();
    let mut status = world.orchestrator.status_changes();
    assert!(!world.orchestrator.delete(&world.id).await.unwrap(), "no turn ran");
    assert_eq!(status.recv().await.unwrap().status, ConversationStatus::Closed, "lists are told");
    assert_eq!(list(&world).await, []);
    let gone = world.orchestrator.status(&world.id).await;
    assert!(matches!(gone, Err(Error::UnknownConversation { .. })));
    let twice = world.orchestrator.delete(&world.id).await;
    assert!(matches!(twice, Err(Error::UnknownConversation { .. })));
    // Another of the same name has nothing of it.
    world.say("anew").await.until("turn-sealed").await;
    assert_eq!(world.chunks().await.iter().map(|chunk| chunk.seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(world.orchestrator.status(&world.id).await.unwrap().auto_retry, Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_is_stopped_and_its_end_told_before_its_conversation_is_deleted() {
    for parked in [false, true] {
        let world = World::new(Scripted::new([overloaded_with_hint(3_600)]));
        let mut watcher = world.say("hi").await;
        watcher.until("provider-retry").await;
        assert!(!world.enqueue("never said").await, "it waits for the turn");
        if parked {
            sleep(Duration::from_secs(600)).await;
        }
        assert!(world.orchestrator.delete(&world.id).await.unwrap());
        let end = watcher.until("turn-sealed").await;
        assert!(end.iter().any(|line| line.starts_with("done aborted")), "{end:?}");
        assert_eq!(list(&world).await, []);
        // Nothing wakes it again.
        sleep(Duration::from_secs(7_200)).await;
        assert_eq!(list(&world).await, []);
        assert!(matches!(world.orchestrator.status(&world.id).await, Err(Error::UnknownConversation { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn who_watches_a_conversation_that_is_deleted_is_told() {
    let world = World::new(Scripted::new([answer("hello")]));
    world.say("hi").await.until("turn-sealed").await;
    let mut watcher = world.orchestrator.subscribe(&world.id, None, false).await.unwrap();
    world.orchestrator.delete(&world.id).await.unwrap();
    let refused = loop {
        match watcher.next().await {
            Ok(frame) => assert!(matches!(event(&frame).body, EventBody::Status { .. })),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::UnknownConversation { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_title_can_be_changed_at_any_time_and_stays() {
    let provider = Scripted::new([overloaded_with_hint(60), answer("hello"), answer("more")]);
    let world = World::of(builder(provider));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    let listed = list(&world).await.remove(0);
    assert_eq!((listed.title.as_str(), listed.model.as_deref()), ("hi", Some("key/model")));
    assert!(listed.waits_until.is_some());
    assert_eq!(world.orchestrator.rename(&world.id, "  The storm ").await.unwrap(), "The storm");
    watcher.until("turn-sealed").await;
    world.say("go on").await.until("turn-sealed").await;
    let listed = list(&world).await.remove(0);
    assert_eq!((listed.title.as_str(), listed.waits_until), ("The storm", None));
    for title in ["", "  ", "two\nlines", &"x".repeat(201)] {
        assert!(matches!(world.orchestrator.rename(&world.id, title).await, Err(Error::BadTitle { .. })));
    }
    let unknown = world.orchestrator.rename(&"unknown".into(), "x").await;
    assert!(matches!(unknown, Err(Error::UnknownConversation { .. })));
}

/// Takes a second to delete a document.
struct Slow(MemoryState);

#[async_trait]
impl StateStore for Slow {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        self.0.read(name).await
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        self.0.write(name, json).await
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        sleep(Duration::from_secs(1)).await;
        self.0.delete(name).await
    }
}

#[tokio::test(start_paused = true)]
async fn settings_changed_during_a_deletion_are_refused() {
    let state = Arc::new(Slow(MemoryState::default()));
    let world = World::of(builder(Scripted::new([answer("hello")])).state(state));
    world.say("hi").await.until("turn-sealed").await;
    let change = async {
        sleep(Duration::from_millis(2_500)).await;
        let own = ModelSettings { temperature: Some(0.5), ..ModelSettings::default() };
        world.orchestrator.set_model_settings(&world.id, own).await
    };
    let (deleted, changed) = tokio::join!(world.orchestrator.delete(&world.id), change);
    deleted.unwrap();
    assert!(matches!(changed, Err(Error::UnknownConversation { .. })), "{changed:?}");
}
