//! Turns whose node is gone, or seems to be.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_node_without_the_model_of_a_turn_leaves_it_to_others() {
    for at_first in ["b", "c", "d", "e"] {
        let nodes = Nodes::new();
        let (a, _) = nodes.node("a", [overloaded_with_hint(600_000)]).await;
        let (journal, cluster) = nodes.log.node(at_first);
        let other = Arc::new(Scripted::new([answer("wrong")]));
        let other =
            everturn_orchestrator::Orchestrator::builder().model("key", "other", other).journal(journal);
        let other = World::of(other.clock(nodes.clock.clone()).cluster(cluster));
        other.orchestrator.resume().await.unwrap();
        let (able, model) = nodes.node("z", [answer("right")]).await;
        let started = a.start("hi").await.unwrap();
        a.watch(Some(started.from)).await.until("provider-retry").await;
        nodes.kill("a", &a);
        let refused = other.orchestrator.retry_now(&other.id).await.unwrap_err();
        assert!(refused.to_string().contains("waits for a server that has key/model"), "{refused}");
        let rest = told(&mut able.watch(Some(started.from)).await).await;
        assert!(rest.contains(&"text-delta right".to_owned()), "{rest:?}");
        assert_eq!(model.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_killed_is_no_heir_and_its_successor_takes_over_at_once() {
    for dead in ["b", "k", "q", "w", "z"] {
        let nodes = Nodes::new();
        let (a, _) = nodes.node("a", [slow(&["one ", "two ", "three ", "four"])]).await;
        let (lost, _) = nodes.node(dead, [vec![]]).await;
        let (c, _) = nodes.node("c", [slow(&["1 ", "2 ", "3 ", "4"])]).await;
        let started = a.start("hi").await.unwrap();
        let mut watcher = c.watch(Some(started.from)).await;
        watcher.until("text-delta").await;
        nodes.kill(dead, &lost);
        let then = Instant::now();
        a.orchestrator.shutdown(Duration::ZERO).await;
        while watcher.until("text-delta").await.last().unwrap() != "text-delta 1 " {}
        assert!(ms_since(then) <= 1_000, "{}", ms_since(then));
        // Killed and started again: nobody waits for a lease.
        nodes.kill("c", &c);
        let then = Instant::now();
        let (next, _) = nodes.node("d", [answer("done")]).await;
        let mut watcher = next.watch(Some(started.from)).await;
        assert!(told(&mut watcher).await.contains(&"text-delta done".to_owned()));
        assert!(ms_since(then) <= 1_000, "{}", ms_since(then));
    }
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_dead_node_goes_on_at_another() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one ", "two ", "three ", "four"])]).await;
    let (b, model) = nodes.node("b", [answer("one two three four")]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = b.watch(Some(started.from)).await;
    let mut seen = String::new();
    while !seen.contains("two") {
        seen = watcher.until("text-delta").await.pop().unwrap();
    }
    let then = Instant::now();
    nodes.kill("a", &a);
    let rest = told(&mut watcher).await;
    assert!(is_rewound(&rest), "{rest:?}");
    assert!(rest.contains(&"text-delta one two three four".to_owned()), "{rest:?}");
    assert!(ms_since(then) <= 20_000, "{}", ms_since(then));
    assert_eq!(b.history().await, ["text hi", "text one two three four"]);
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_command_on_a_dead_node_takes_its_turn_over_at_once() {
    for is_frozen in [false, true] {
        let nodes = Nodes::new();
        let (a, _) = nodes.node("a", [overloaded_with_hint(600_000)]).await;
        let (b, model) = nodes.node("b", [answer("hello")]).await;
        let started = a.start("hi").await.unwrap();
        a.watch(Some(started.from)).await.until("provider-retry").await;
        if is_frozen {
            nodes.log.cut_off("a");
        } else {
            nodes.kill("a", &a);
        }
        let then = Instant::now();
        assert!(b.orchestrator.retry_now(&b.id).await.unwrap());
        let told = told(&mut b.watch(Some(started.from)).await).await;
        assert!(told.contains(&"text-delta hello".to_owned()), "{told:?}");
        assert!(ms_since(then) <= 1_000, "{}", ms_since(then));
        assert_eq!(model.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_finds_its_turn_taken_over() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [slow(&["one ", "two ", "three ", "four"])]).await;
    let (b, at_b) = nodes.node("b", [answer("1 2 3 4"), answer("5")]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = a.watch(Some(started.from)).await;
    watcher.until("text-delta").await;
    nodes.log.cut_off("a");
    let mut at_other = b.watch(Some(started.from)).await;
    let rest = told(&mut at_other).await;
    assert!(rest.contains(&"text-delta 1 2 3 4".to_owned()), "{rest:?}");
    nodes.log.connect("a");
    // Its watcher is not told of an error: the text is taken back, and the other node's follows.
    let rest = told(&mut watcher).await;
    assert!(is_rewound(&rest), "{rest:?}");
    assert_eq!(rest.iter().filter(|line| *line == "text-delta 1 2 3 4").count(), 1, "{rest:?}");
    assert_eq!((at_a.calls(), at_b.calls()), (1, 1));
    assert_eq!(nodes.log.appends().stale, 1);
    // It takes part again.
    assert_eq!(a.history().await, ["text hi", "text 1 2 3 4"]);
    let mut watcher = a.watch(None).await;
    b.start("and").await.unwrap();
    assert!(told(&mut watcher).await.contains(&"text-delta 5".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_kept_when_its_node_dies() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [refused_with_hint(60_000)]).await;
    let (b, at_b) = nodes.node("b", [answer("hello")]).await;
    let (c, at_c) = nodes.node("c", [answer("hello")]).await;
    let then = Instant::now();
    let started = a.start("hi").await.unwrap();
    a.watch(Some(started.from)).await.until("provider-retry").await;
    nodes.kill("a", &a);
    let mut watcher = c.watch(Some(started.from)).await;
    told(&mut watcher).await;
    assert!((60_000..62_000).contains(&ms_since(then)), "{}", ms_since(then));
    assert_eq!(at_b.calls() + at_c.calls(), 1);
    assert_eq!(b.history().await, ["text hi", "text hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_hands_turns_over() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one ", "two ", "three ", "four"])]).await;
    let (b, model) = nodes.node("b", [answer("1 2 3 4")]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = b.watch(Some(started.from)).await;
    watcher.until("text-delta").await;
    let then = Instant::now();
    a.orchestrator.shutdown(Duration::ZERO).await;
    let rest = told(&mut watcher).await;
    assert!(rest.contains(&"text-delta 1 2 3 4".to_owned()), "{rest:?}");
    assert!(ms_since(then) <= 1_000, "{}", ms_since(then));
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_cut_off_itself_takes_no_turn_from_another() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [slow(&["one "; 20])]).await;
    let (b, at_b) = nodes.node("b", [answer("wrong")]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = b.watch(Some(started.from)).await;
    watcher.until("text-delta").await;
    nodes.log.cut_off("b");
    // It hears nothing of the other node, and waits for the journal.
    let refused = tokio::spawn({
        let message = b.message("me");
        let orchestrator = b.orchestrator.clone();
        async move { orchestrator.start(message).await }
    });
    sleep(Duration::from_secs(5)).await;
    nodes.log.connect("b");
    assert!(matches!(refused.await.unwrap(), Err(Error::Busy { .. })));
    let end = told(&mut watcher).await;
    assert!(!is_rewound(&end), "{end:?}");
    assert_eq!((at_a.calls(), at_b.calls()), (1, 0));
}
