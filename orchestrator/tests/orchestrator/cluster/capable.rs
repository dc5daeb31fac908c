//! Turns that not every node can continue.

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, Policy, StartTurn, Tool,
    kernel::{Provider, ToolAnswer, ToolSpec},
};
use everturn_wire::{ApprovalAnswer, Value, Verdict};

use super::*;
use crate::support::tool_call;

/// A tool whose calls need approval.
struct Deploy;

#[async_trait]
impl Tool for Deploy {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "deploy".to_owned(), description: String::new(), parameters: Value::Null }
    }

    fn policy(&self) -> Policy {
        Policy::Ask
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok("deployed")
    }
}

impl Nodes {
    /// Starts a node with these models, which answer alike, and a route over them.
    async fn routed(&self, name: &str, models: &[&str], provider: impl Provider) -> World {
        let provider = Arc::new(provider);
        let add = |builder: Builder, model: &&str| builder.model("key", model, provider.clone());
        let builder = models.iter().fold(self.builder(name), add);
        let targets: Vec<_> = models.iter().map(|model| format!("key/{model}")).collect();
        let world = World::of(builder.plain_route("best", targets));
        world.orchestrator.resume().await.unwrap();
        world
    }
}

async fn allow(world: &World) -> Result<bool, Error> {
    let asked = world.orchestrator.approvals(&world.id).await?.pending.remove(0);
    let answer = ApprovalAnswer {
        turn_id: asked.turn_id,
        step_id: asked.step_id,
        tool_call_id: asked.tool_call_id,
        verdict: Verdict::Allowed,
        scope: None,
        reason: None,
        name: None,
        via: None,
    };
    world.orchestrator.answer_approval(&world.id, answer).await
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_tool_of_an_open_call_leaves_its_turn_to_others() {
    let nodes = Nodes::new();
    let with_tool = |builder: Builder| builder.tool(Deploy);
    let (a, _) = nodes.node_with("a", [vec![tool_call("x", "deploy"), finish()]], with_tool).await;
    let (b, at_b) = nodes.node("b", [answer("no tool")]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = b.watch(Some(started.from)).await;
    watcher.until("approval-requested").await;
    nodes.kill("a", &a);
    // Asked twice: that it was refused has no effect on the turn.
    for _ in 0..2 {
        let refused = allow(&b).await.unwrap_err();
        assert!(refused.to_string().contains("waits for a server that has the tool deploy"), "{refused}");
    }
    let (c, _) = nodes.node_with("c", [answer("done")], with_tool).await;
    assert!(allow(&c).await.unwrap());
    let end = told(&mut watcher).await;
    assert!(end.contains(&"tool-result x deployed".to_owned()), "{end:?}");
    assert_eq!(at_b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_route_continues_at_a_node_that_has_any_of_its_targets() {
    let nodes = Nodes::new();
    let a = nodes.routed("a", &["one", "two"], Scripted::new([overloaded_with_hint(600_000)])).await;
    let start = StartTurn::new("hi").conversation(a.id.clone()).model("route/best");
    let started = a.orchestrator.start(start).await.unwrap();
    a.watch(Some(started.from)).await.until("provider-retry").await;
    let none = nodes.routed("b", &["three"], Scripted::new([answer("wrong")])).await;
    let mut watcher = none.watch(Some(started.from)).await;
    nodes.kill("a", &a);
    for _ in 0..2 {
        let refused = none.orchestrator.retry_now(&none.id).await.unwrap_err();
        assert!(refused.to_string().contains("waits for a server that has key/one or key/two"), "{refused}");
    }
    let some = nodes.routed("c", &["two"], Scripted::new([answer("right")])).await;
    some.orchestrator.retry_now(&some.id).await.unwrap();
    let end = told(&mut watcher).await;
    assert!(end.contains(&"text-delta right".to_owned()), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn an_heir_that_lacks_the_model_hands_the_turn_on() {
    for heir in ["b", "c", "d", "e"] {
        let nodes = Nodes::new();
        let (a, _) = nodes.node("a", [slow(&["one ", "two ", "three ", "four"])]).await;
        let other = nodes.routed(heir, &["other"], Scripted::new([answer("wrong")])).await;
        let (able, model) = nodes.node("z", [answer("right")]).await;
        let started = a.start("hi").await.unwrap();
        let mut watcher = other.watch(Some(started.from)).await;
        watcher.until("text-delta").await;
        nodes.kill("a", &a);
        let then = Instant::now();
        let end = told(&mut watcher).await;
        assert!(end.contains(&"text-delta right".to_owned()), "{end:?}");
        assert!(ms_since(then) <= 20_000, "{}", ms_since(then));
        assert_eq!(model.calls(), 1);
        drop(able);
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_say_what_they_have() {
    let nodes = Nodes::new();
    let many: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let _a = nodes.routed("a", &many, Scripted::new([answer("unused")])).await;
    let b = nodes.routed("b", &["one"], Scripted::new([answer("unused")])).await;
    let state = b.orchestrator.cluster().await.unwrap();
    let models: Vec<_> = state.nodes.iter().map(|node| node.models.clone()).collect();
    assert_eq!(models[1], ["key/one", "route/best"]);
    assert_eq!((models[0].len(), models[0][0].as_str()), (100, "key/m0"));
}
