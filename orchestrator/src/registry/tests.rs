use everturn_kernel::{FinishReason, StreamEvent};
use everturn_provider::Scripted;
use everturn_wire::{AgentEvent, Category, ConversationStatus, EventBody, Failure};
use futures_util::future::join_all;

use super::*;
use crate::{Cursor, Orchestrator, StartTurn, Subscription};

fn orchestrator() -> Orchestrator {
    let answer = vec![StreamEvent::Text("hello".into()), StreamEvent::Finished(FinishReason::Stop)];
    Orchestrator::builder().model("test", "m", Arc::new(Scripted::new([answer]))).build()
}

/// Runs a turn to the end and returns its subscription.
async fn turn(orchestrator: &Orchestrator, id: &ConversationId) -> Subscription {
    let start = StartTurn::new("hi").conversation(id.clone());
    let started = orchestrator.start(start).await.unwrap();
    let mut watcher = orchestrator.subscribe(id, Some(started.from), false).await.unwrap();
    while !matches!(body(&mut watcher).await, EventBody::Status { status: ConversationStatus::Idle, .. }) {}
    watcher
}

async fn body(watcher: &mut Subscription) -> EventBody {
    serde_json::from_slice::<AgentEvent>(&watcher.next().await.unwrap().event()).unwrap().body
}

/// Waits until `count` conversations are in memory; a session ends slightly after its turn.
async fn falls_to(orchestrator: &Orchestrator, count: usize) {
    for _ in 0..100_000 {
        if orchestrator.registry().home.loaded.len() == count {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} conversations stay in memory", orchestrator.registry().home.loaded.len());
}

#[tokio::test]
async fn a_thousand_idle_conversations_hold_no_memory() {
    let orchestrator = orchestrator();
    let ids: Vec<ConversationId> = (0..1_000).map(|n| n.to_string().as_str().into()).collect();
    let watchers = join_all(ids.iter().map(|id| turn(&orchestrator, id))).await;
    falls_to(&orchestrator, 1_000).await;
    drop(watchers);
    falls_to(&orchestrator, 0).await;
    // Requests about them leave nothing in memory either.
    for id in &ids[..10] {
        orchestrator.status(id).await.unwrap();
        orchestrator.history(id, Window::default()).await.unwrap();
        assert!(!orchestrator.stop(id).await.unwrap());
    }
    let unknown = ConversationId::from("unknown");
    orchestrator.status(&unknown).await.unwrap_err();
    falls_to(&orchestrator, 0).await;
}

#[tokio::test]
async fn what_left_memory_comes_back_as_it_was() {
    let (orchestrator, id) = (orchestrator(), ConversationId::from("c"));
    let seen = turn(&orchestrator, &id).await.cursor();
    orchestrator.set_auto_retry(Some(&id), false).await.unwrap();
    falls_to(&orchestrator, 0).await;
    assert_eq!(orchestrator.status(&id).await.unwrap().auto_retry, Some(false));
    // A cursor from before continues with the new events, and one from the start reads all of them.
    let mut late = orchestrator.subscribe(&id, Some(seen), true).await.unwrap();
    drop(turn(&orchestrator, &id).await);
    assert_eq!(body(&mut late).await, EventBody::Status { status: ConversationStatus::Active, retry: None });
    drop(late);
    falls_to(&orchestrator, 0).await;
    let mut all = orchestrator.subscribe(&id, Some(Cursor::default()), true).await.unwrap();
    for _ in 0..2 {
        while body(&mut all).await != EventBody::TurnSealed {}
    }
    let history = orchestrator.history(&id, Window::default()).await.unwrap();
    assert_eq!(history.chunks.iter().map(|chunk| chunk.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    drop(all);
    orchestrator.set_auto_retry(Some(&id), true).await.unwrap();
    falls_to(&orchestrator, 0).await;
    assert_eq!(orchestrator.status(&id).await.unwrap().auto_retry, Some(true));
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_a_turn_that_waits_comes_back() {
    let busy = vec![StreamEvent::Failed(Failure::new(Category::Overloaded, true, "HTTP 529: busy"))];
    let provider = Arc::new(Scripted::new([busy]));
    let (orchestrator, id) =
        (Orchestrator::builder().model("test", "m", provider).build(), ConversationId::from("c"));
    let start = StartTurn::new("hi").conversation(id.clone());
    orchestrator.start(start).await.unwrap();
    falls_to(&orchestrator, 0).await;
    let queued = orchestrator.enqueue(&id, "and then".into(), Some("m".into())).await.unwrap();
    assert!(!queued.started_turn);
    falls_to(&orchestrator, 0).await;
    let still = orchestrator.cancel_queued(&id, "another").await.unwrap();
    assert_eq!((still.cancelled, still.queue), (false, queued.queue));
}
