//! The list of conversations at a node that drives none of them.

use everturn_orchestrator::{Page, StatusChange};
use everturn_wire::{ConversationStatus::*, ConversationSummary};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::*;

async fn listed(world: &World) -> Vec<ConversationSummary> {
    world.orchestrator.conversations(Page::default()).await.unwrap().0
}

/// Returns the statuses that were announced, once everything has come to rest.
async fn announced(changes: &mut Receiver<StatusChange>) -> Vec<ConversationStatus> {
    sleep(Duration::from_millis(1)).await;
    let mut statuses = Vec::new();
    while let Ok(change) = changes.try_recv() {
        statuses.push(change.status);
    }
    statuses
}

#[tokio::test(start_paused = true)]
async fn the_list_shows_what_another_node_does() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [overloaded_with_hint(60_000), answer("hello")]).await;
    let (b, unused) = nodes.node("b", [vec![]]).await;
    let (mut at_a, mut at_b) = (a.orchestrator.status_changes(), b.orchestrator.status_changes());
    let mut watcher = a.say("hi").await;
    watcher.until("provider-retry").await;
    assert_eq!(announced(&mut at_b).await, [Active]);
    let waits = nodes.clock.now().0 + 60_000;
    let is_waiting = async || {
        let (here, there) = (listed(&a).await, listed(&b).await);
        assert_eq!(here, there);
        assert!(there[0].waits_until.is_some_and(|at| waits.abs_diff(at) < 1_000), "{there:?}");
    };
    is_waiting().await;
    // Parked: no node has it in memory.
    drop(watcher);
    sleep(Duration::from_secs(10)).await;
    is_waiting().await;
    // In memory at a node that follows it.
    let follows = b.watch(None).await;
    is_waiting().await;
    drop(follows);
    let mut watcher = a.watch(None).await;
    a.orchestrator.rename(&a.id, "renamed").await.unwrap();
    assert_eq!(announced(&mut at_b).await, [Active]);
    assert_eq!(listed(&b).await[0].title, "renamed");
    assert!(b.orchestrator.retry_now(&b.id).await.unwrap());
    watcher.until("turn-sealed").await;
    assert_eq!(announced(&mut at_b).await, [Idle]);
    assert_eq!((listed(&b).await[0].waits_until, listed(&b).await[0].status), (None, Idle));
    a.orchestrator.delete(&a.id).await.unwrap();
    assert_eq!(announced(&mut at_b).await, [Closed]);
    assert_eq!(listed(&b).await, []);
    assert_eq!(announced(&mut at_a).await, [Active, Active, Idle, Closed], "each of its own changes once");
    assert_eq!(unused.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_cut_off_announces_how_things_are() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [answer("one"), answer("two")]).await;
    let (b, _) = nodes.node("b", [vec![]]).await;
    a.say("hi").await.until("turn-sealed").await;
    let mut at_b = b.orchestrator.status_changes();
    announced(&mut at_b).await;
    nodes.log.cut_off("b");
    a.say("again").await.until("turn-sealed").await;
    assert_eq!(announced(&mut at_b).await, []);
    nodes.log.connect("b");
    assert_eq!(announced(&mut at_b).await, [Idle]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_told_nothing() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [answer("one")]).await;
    let (b, _) = nodes.node("b", [vec![]]).await;
    let mut at_b = b.orchestrator.status_changes();
    drop(b);
    a.say("hi").await.until("turn-sealed").await;
    assert_eq!(at_b.recv().await, Err(RecvError::Closed));
}
