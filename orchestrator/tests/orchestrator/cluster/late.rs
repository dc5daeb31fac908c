//! Appends that are stored after their node was told that their outcome is unknown, and requests that hang meanwhile.

use everturn_orchestrator::JournalError;
use everturn_sim::cluster::{Cut, Way};

use super::*;

/// Every append is stored late.
const DELAYED: Noise = Noise { delayed: 1.0, ..QUIET };
const QUIET: Noise = Noise {
    lost: 0.0,
    doubled: 0.0,
    late: 0.0,
    unknown: 0.0,
    unsent: 0.0,
    delayed: 0.0,
    commands: Carriage { lost: 0.0, doubled: 0.0, late: 0.0 },
};

#[tokio::test(start_paused = true)]
async fn a_turn_whose_beginning_is_stored_late_goes_on() {
    for is_in_memory in [false, true] {
        let nodes = Nodes::new();
        let (a, model) = nodes.node("a", [answer("before"), answer("hello")]).await;
        let (b, unused) = nodes.node("b", []).await;
        told(&mut a.say("first").await).await;
        let (id, mut at_b) = (b.id.clone(), b.watch(None).await);
        nodes.log.disturb(DELAYED);
        let error = a.start("hi").await.unwrap_err();
        assert!(matches!(error, Error::Journal(JournalError::Unknown(_))), "{error}");
        nodes.log.calm();
        let mut watcher = None;
        if is_in_memory {
            // Loaded without the turn, which it then finds to be its own.
            watcher = Some(a.watch(None).await);
        } else {
            // It has looked for the turn when the log could be reached again, and found nothing.
            nodes.log.part("a", Cut { log: Way::Both, ..Cut::default() });
            sleep(Duration::from_secs(15)).await;
            nodes.log.heal("a");
        }
        let told = timeout(Duration::from_secs(90), told(&mut at_b)).await.expect("the turn goes on");
        assert!(told.contains(&"text-delta hello".to_owned()), "{told:?}");
        assert_eq!(nodes.log.appends().late, 1);
        assert_eq!((model.calls(), unused.calls()), (2, 0));
        assert!(!a.orchestrator.stop(&id).await.unwrap(), "it is over");
        drop(watcher);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_misses_nothing_that_is_stored_late() {
    let nodes = Nodes::new();
    let calls = [slow(&["one ", "two"]), answer("one two"), answer("three")];
    let (a, _) = nodes.node("a", calls).await;
    let (b, _) = nodes.node("b", []).await;
    let started = a.start("hi").await.unwrap();
    let mut at_a = a.watch(Some(started.from)).await;
    let mut at_b = b.watch(Some(started.from)).await;
    at_a.until("text-delta").await;
    nodes.log.disturb(DELAYED);
    // The turn is sealed, but its node does not know that yet, and loads what was before.
    while nodes.log.appends().late == 0 {
        at_a = a.watch(Some(at_a.subscription.cursor())).await;
        let _ = timeout(Duration::from_millis(10), at_a.subscription.next()).await;
    }
    nodes.log.calm();
    let (mut end_a, mut end_b) = (told(&mut at_a).await, told(&mut at_b).await);
    assert_eq!((end_a.pop(), end_b.pop()), (Some("turn-sealed".to_owned()), Some("turn-sealed".to_owned())));
    let mut fresh = b.watch(Some(started.from)).await;
    let all = told(&mut fresh).await;
    let done = |lines: &[String]| lines.iter().filter(|line| line.starts_with("done")).count();
    assert_eq!((done(&end_a), done(&end_b), done(&all)), (1, 1, 1), "{end_a:?} {end_b:?} {all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_key_starts_one_turn_although_its_request_hangs_at_another_node() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [answer("hello")]).await;
    let (b, at_b) = nodes.node("b", [answer("hello again")]).await;
    nodes.log.part("b", Cut { bus: Way::Both, ..Cut::default() });
    let start = || b.message("hi").idempotency_key("key");
    let (other, hanging) = (b.orchestrator.clone(), start());
    let hanging = tokio::spawn(async move { other.start(hanging).await });
    // It has found that the key is new, and waits for the bus.
    sleep(Duration::from_secs(1)).await;
    let started = a.orchestrator.start(start()).await.unwrap();
    told(&mut a.watch(Some(started.from)).await).await;
    nodes.log.heal("b");
    let again = hanging.await.unwrap().unwrap();
    assert_eq!((again.turn_id, again.is_new), (started.turn_id, false));
    assert_eq!(b.history().await, ["text hi", "text hello"]);
    assert_eq!((at_a.calls(), at_b.calls()), (1, 0));
}
