//! Nodes that are frozen between saving a tool call and starting it.

use std::sync::Mutex;

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Invocation, Tool,
    kernel::{ToolAnswer, ToolSpec, Turn},
};
use everturn_wire::Value;

use super::*;
use crate::support::tool_call;

/// A tool that takes ten seconds, and when it was started.
#[derive(Clone, Default)]
struct Charge(Arc<Mutex<Vec<Instant>>>);

impl Charge {
    fn starts(&self) -> Vec<Instant> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Charge {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "charge".to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        self.0.lock().unwrap().push(Instant::now());
        sleep(Duration::from_secs(10)).await;
        ToolAnswer::ok("charged")
    }
}

fn calls_a_tool(commit: &Commit) -> bool {
    let turn = commit.turn.as_ref().map(|record| Turn::restore(record.snapshot.clone()).unwrap());
    turn.is_some_and(|turn| turn.running_calls().next().is_some())
}

/// Two nodes, of which the first one is frozen right after it has saved a call, with the tool and a watcher at the other.
async fn frozen(nodes: &Nodes) -> (World, World, Charge, Watcher) {
    let charge = Charge::default();
    let calls = [vec![tool_call("a", "charge"), finish()], answer("charged, says a")];
    let (a, _) = nodes.node_with("a", calls, |builder| builder.tool(charge.clone())).await;
    let (b, _) = nodes.node_with("b", [answer("hm")], |builder| builder.tool(charge.clone())).await;
    let frozen = nodes.log.freeze_after("a", calls_a_tool);
    let started = a.start("hi").await.unwrap();
    frozen.await.unwrap();
    let watcher = b.watch(Some(started.from)).await;
    (a, b, charge, watcher)
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_started_after_another_node_reported_it_as_interrupted() {
    let nodes = Nodes::new();
    let (a, b, charge, mut watcher) = frozen(&nodes).await;
    let end = told(&mut watcher).await;
    assert!(end.contains(&"text-delta hm".to_owned()), "{end:?}");
    nodes.log.connect("a");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(charge.starts(), []);
    for world in [&a, &b] {
        let history = world.history().await;
        assert!(history.iter().any(|line| line.contains("interrupted by a restart")), "{history:?}");
        assert_eq!(history.last().unwrap(), "text hm");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_nobody_replaced_while_it_was_frozen_starts_its_call_once() {
    for frozen_ms in [1_000, 5_000] {
        let nodes = Nodes::new();
        let (a, _, charge, mut watcher) = frozen(&nodes).await;
        sleep(Duration::from_millis(frozen_ms)).await;
        let appends = nodes.log.appends().stored;
        nodes.log.connect("a");
        sleep(Duration::from_secs(1)).await;
        // After a long freeze, it saves the turn once more.
        assert_eq!(nodes.log.appends().stored - appends, u64::from(frozen_ms > 2_000));
        let end = told(&mut watcher).await;
        assert!(end.contains(&"text-delta charged, says a".to_owned()), "{end:?}");
        assert_eq!(charge.starts().len(), 1);
        assert_eq!(a.history().await.last().unwrap(), "text charged, says a");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_does_not_report_a_call_that_may_be_starting() {
    let nodes = Nodes::new();
    let (_a, b, charge, mut watcher) = frozen(&nodes).await;
    // The other node finds that the first one does not answer, and takes over; just then it thaws.
    let takes_over = tokio::spawn({
        let message = b.message("me");
        async move { b.orchestrator.start(message).await }
    });
    sleep(Duration::from_millis(1_000)).await;
    nodes.log.connect("a");
    sleep(Duration::from_millis(100)).await;
    nodes.log.cut_off("a");
    let line = watcher.until("tool-result").await.pop().unwrap();
    assert!(line.contains("interrupted by a restart"), "{line}");
    let reported = Instant::now();
    takes_over.await.unwrap().unwrap_err();
    told(&mut watcher).await;
    let [started] = charge.starts()[..] else { panic!("{:?}", charge.starts()) };
    assert!(started < reported, "{:?} after", started - reported);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_answers_again_keeps_its_turn() {
    let nodes = Nodes::new();
    let (_a, b, charge, mut watcher) = frozen(&nodes).await;
    let takes_over = tokio::spawn({
        let message = b.message("me");
        async move { b.orchestrator.start(message).await }
    });
    sleep(Duration::from_millis(1_500)).await;
    nodes.log.connect("a");
    assert!(matches!(takes_over.await.unwrap(), Err(Error::Busy { .. })));
    let end = told(&mut watcher).await;
    assert!(end.contains(&"tool-result a charged".to_owned()), "{end:?}");
    assert_eq!(charge.starts().len(), 1);
}
