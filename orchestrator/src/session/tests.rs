//! Tests for sessions that crash, and for the counters.

use std::{sync::Arc, time::Duration};

use everturn_kernel::{FinishReason, Millis, StreamEvent};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Category, ConversationId, Failure};
use tokio::time::sleep;

use crate::{Error, Orchestrator, StartTurn, Window};

fn answer() -> Vec<Cue> {
    vec![StreamEvent::Text("hello".into()).into(), StreamEvent::Finished(FinishReason::Stop).into()]
}

fn refused() -> Vec<Cue> {
    let failure =
        Failure { hint_ms: Some(60_000), ..Failure::new(Category::Overloaded, true, "HTTP 529: busy") };
    vec![StreamEvent::Failed(failure).into()]
}

fn orchestrator(calls: impl IntoIterator<Item = Vec<Cue>>) -> Orchestrator {
    Orchestrator::builder().model("test", "m", Arc::new(Scripted::new(calls))).build()
}

async fn start(orchestrator: &Orchestrator) {
    let start = StartTurn::new("hi").conversation("c");
    orchestrator.start(start).await.unwrap();
}

async fn chunks(orchestrator: &Orchestrator) -> usize {
    orchestrator.history(&"c".into(), Window::default()).await.unwrap().chunks.len()
}

#[tokio::test(start_paused = true)]
async fn a_session_that_breaks_beside_its_turn_leaves_the_seat() {
    let (orchestrator, id) = (orchestrator([answer(), answer()]), ConversationId::from("c"));
    start(&orchestrator).await;
    sleep(Duration::from_secs(1)).await;
    let conversation = orchestrator.registry().get(&id).await.unwrap();
    let mut watcher = orchestrator.subscribe(&id, None, false).await.unwrap();
    let seated = conversation.claim().unwrap();
    let broken = tokio::spawn(async move {
        let _seated = seated;
        panic!("it broke");
    });
    assert!(broken.await.is_err());
    assert_eq!(watcher.next().await.unwrap_err(), Error::Broken { id: id.clone() });
    // Holders of the lost instance get the error; a new request reloads the conversation as saved.
    assert_eq!(conversation.claim().err(), Some(Error::Broken { id: id.clone() }));
    start(&orchestrator).await;
    watcher.next().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(chunks(&orchestrator).await, 4);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_session_breaks_as_it_is_taken_up_goes_on_by_itself() {
    let (orchestrator, id) = (orchestrator([refused(), answer()]), ConversationId::from("c"));
    start(&orchestrator).await;
    sleep(Duration::from_secs(1)).await;
    let conversation = orchestrator.registry().get(&id).await.unwrap();
    let (_, seated) = conversation.claim_due(Millis(u64::MAX)).unwrap().unwrap();
    drop(conversation);
    assert!(tokio::spawn(async move { panic!("{}", seated.conversation.id) }).await.is_err());
    sleep(Duration::from_secs(120)).await;
    assert_eq!(chunks(&orchestrator).await, 2);
}
