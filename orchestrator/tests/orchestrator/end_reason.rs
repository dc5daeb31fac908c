//! Lists say why the last turn ended.

use everturn_orchestrator::kernel::StreamEvent;
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Category, ConversationStatus, DoneReason, Failure};

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, builder, refused, text},
};

fn failed() -> Vec<Cue> {
    vec![StreamEvent::Failed(Failure::new(Category::Permission, false, "HTTP 403: not for you")).into()]
}

#[tokio::test(start_paused = true)]
async fn the_list_says_why_the_last_turn_ended_and_nothing_while_one_runs() {
    let provider = Scripted::new([failed(), refused(), answer("fine"), vec![text("hel"), Cue::Hang]]);
    let storage = Storage::new(|_| Mishap::Nothing);
    let world = World::of(builder(provider).journal(storage.clone()));

    world.say("fails").await.until("status idle").await;
    assert_eq!(world.end_reason().await, Some(DoneReason::Error));
    let mut watcher = world.say("waits").await;
    watcher.until("provider-retry").await;
    assert_eq!(world.end_reason().await, None, "it waits");
    watcher.until("status idle").await;
    assert_eq!(world.end_reason().await, Some(DoneReason::Stop));
    let mut watcher = world.say("is stopped").await;
    watcher.until("text-delta").await;
    assert_eq!(world.end_reason().await, None, "it runs");
    assert!(world.stop().await);
    watcher.until("status idle").await;
    assert_eq!(world.end_reason().await, Some(DoneReason::Aborted));

    // Another process finds it in the journal.
    let next = World::of(builder(Scripted::new([failed()])).journal(storage));
    assert_eq!(next.end_reason().await, Some(DoneReason::Aborted));
}

#[tokio::test(start_paused = true)]
async fn a_queued_message_that_follows_hides_the_failure_and_closing_does_not() {
    let provider = Scripted::new([refused(), vec![text("hel"), Cue::Hang], failed()]);
    let world = World::of(builder(provider).journal(Storage::new(|_| Mishap::Nothing)));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    world.enqueue("next").await;
    assert!(world.orchestrator.abort_retry(&world.id).await.unwrap());
    watcher.until("text-delta").await;
    assert_eq!((world.status().await, world.end_reason().await), (ConversationStatus::Active, None));
    assert!(world.stop().await);
    watcher.until("status idle").await;
    world.say("fails").await.until("status idle").await;
    world.orchestrator.close(&world.id).await.unwrap();
    let ended = (ConversationStatus::Closed, Some(DoneReason::Error));
    assert_eq!((world.status().await, world.end_reason().await), ended);
}
