//! Commands at a node that was replaced and does not know it yet.

use super::*;

/// A node whose turn another one took over while it was cut off, and that other one. The first one is connected again, and
/// has not looked yet. The turn streams for `words` seconds more.
async fn replaced(nodes: &Nodes, words: usize, then: Vec<Cue>) -> (World, World, Watcher) {
    let (a, _) = nodes.node("a", [slow(&["a "; 40])]).await;
    let (b, _) = nodes.node("b", [slow(&vec!["b "; words]), then]).await;
    let started = a.start("hi").await.unwrap();
    a.watch(Some(started.from)).await.until("text-delta").await;
    nodes.log.cut_off("a");
    assert!(matches!(b.start("me").await, Err(Error::Busy { .. })));
    let mut watcher = b.watch(Some(started.from)).await;
    while watcher.until("text-delta").await.last().unwrap() != "text-delta b " {}
    (a, b, watcher)
}

#[tokio::test(start_paused = true)]
async fn a_stop_reaches_the_turn_at_its_new_owner() {
    let nodes = Nodes::new();
    let (a, b, mut watcher) = replaced(&nodes, 20, answer("never")).await;
    nodes.log.connect("a");
    assert!(a.stop().await);
    let end = told(&mut watcher).await;
    assert!(end.iter().any(|line| line == "done aborted"), "{end:?}");
    assert_eq!(b.status().await, ConversationStatus::Idle);
    assert!(!a.stop().await, "no turn runs");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_reach_a_later_turn() {
    let nodes = Nodes::new();
    let (a, b, mut watcher) = replaced(&nodes, 2, slow(&["next "; 5])).await;
    told(&mut watcher).await;
    watcher.until("status idle").await;
    let mut watcher = b.say("and").await;
    watcher.until("text-delta").await;
    nodes.log.connect("a");
    assert!(!a.stop().await);
    let end = told(&mut watcher).await;
    assert!(end.iter().any(|line| line == "done stop"), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_now_is_carried_out_once_by_the_new_owner() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [overloaded_with_hint(600_000), answer("never")]).await;
    let (b, at_b) = nodes.node("b", [overloaded_with_hint(600_000), answer("hello")]).await;
    let started = a.start("hi").await.unwrap();
    a.watch(Some(started.from)).await.until("provider-retry").await;
    nodes.log.cut_off("a");
    // The other node takes over, and is refused as well.
    assert!(b.orchestrator.retry_now(&b.id).await.unwrap());
    let mut watcher = b.watch(Some(started.from)).await;
    watcher.until("provider-retry").await;
    nodes.log.connect("a");
    let _holds = a.watch(None).await;
    assert!(a.orchestrator.retry_now(&a.id).await.unwrap());
    let end = told(&mut watcher).await;
    assert!(end.contains(&"text-delta hello".to_owned()), "{end:?}");
    assert_eq!((at_a.calls(), at_b.calls()), (1, 2));
}
