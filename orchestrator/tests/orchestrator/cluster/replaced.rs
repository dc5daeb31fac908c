//! Commands at a node that was replaced and does not know it yet.

use everturn_sim::cluster::{Cut, Way};

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

#[tokio::test(start_paused = true)]
async fn a_retry_now_does_not_end_a_wait_that_began_at_another_node_meanwhile() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [overloaded_with_hint(600_000), answer("never")]).await;
    let (b, at_b) = nodes.node("b", [overloaded_with_hint(600_000), answer("never")]).await;
    let started = a.start("hi").await.unwrap();
    let mut at_its_own = a.watch(Some(started.from)).await;
    at_its_own.until("provider-retry").await;
    nodes.log.cut_off("a");
    assert!(b.orchestrator.retry_now(&b.id).await.unwrap());
    let mut watcher = b.watch(Some(started.from)).await;
    watcher.until("provider-retry").await;
    watcher.until("provider-retry").await;
    nodes.log.connect("a");
    // It has not heard yet that another node drives its turn.
    assert!(!a.orchestrator.retry_now(&a.id).await.unwrap());
    assert_eq!((at_a.calls(), at_b.calls()), (1, 1));
}

/// A node whose commands arrive, but whose replies and signs of life do not; and one that sends it commands.
async fn mute(nodes: &Nodes) -> (World, World, [Arc<Scripted>; 2], Watcher) {
    let wait = || overloaded_with_hint(600_000);
    let (a, at_a) = nodes.node("a", [wait(), wait(), answer("never")]).await;
    let (b, at_b) = nodes.node("b", [answer("never")]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = b.watch(Some(started.from)).await;
    watcher.until("provider-retry").await;
    // It keeps the conversation in memory, which it could not load without the bus.
    let at_its_own = a.watch(None).await;
    nodes.log.part("a", Cut { bus: Way::Out, ..Cut::default() });
    (a, b, [at_a, at_b], at_its_own)
}

#[tokio::test(start_paused = true)]
async fn a_retry_now_that_a_silent_node_carried_out_does_not_end_the_next_wait() {
    let nodes = Nodes::new();
    let (_a, b, [at_a, at_b], _watcher) = mute(&nodes).await;
    let unknown = b.orchestrator.retry_now(&b.id).await;
    assert!(matches!(unknown, Err(Error::NoReply { .. })), "{unknown:?}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!((at_a.calls(), at_b.calls()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_a_silent_node_carried_out_is_not_said_to_have_had_no_effect() {
    let nodes = Nodes::new();
    let (a, b, _, _watcher) = mute(&nodes).await;
    let unknown = b.orchestrator.abort_retry(&b.id).await;
    assert!(matches!(unknown, Err(Error::NoReply { .. })), "{unknown:?}");
    assert!(a.end_reason().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_retry_now_that_arrives_twice_ends_one_wait() {
    let twice = Carriage { doubled: 1.0, late: 1.0, ..Carriage::default() };
    let nodes = Nodes::noisy(Noise { commands: twice, ..Noise::default() });
    let wait = || overloaded_with_hint(600_000);
    let (a, at_a) = nodes.node("a", [wait(), wait(), answer("never")]).await;
    let (b, _) = nodes.node("b", [answer("never")]).await;
    let started = a.start("hi").await.unwrap();
    b.watch(Some(started.from)).await.until("provider-retry").await;
    let _unknown = b.orchestrator.retry_now(&b.id).await;
    sleep(Duration::from_secs(60)).await;
    assert!(at_a.calls() <= 2, "{}", at_a.calls());
}
