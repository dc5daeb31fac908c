//! Tools: how many run at once, what watchers see of them, and what becomes of those that break.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, Tool,
    kernel::{Settings, ToolAnswer, ToolSpec},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{OutputStream, Value};
use tokio::sync::Semaphore;

use crate::support::{World, answer, ask, builder, finish, tool_call};

fn spec(name: &str) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: String::new(), parameters: Value::Null }
}

/// Never ends. Counts its calls that are under way.
#[derive(Clone, Default)]
pub(crate) struct Stuck {
    present: Arc<()>,
}

impl Stuck {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn running(&self) -> usize {
        // This one and the one in the orchestrator are no calls.
        Arc::strong_count(&self.present) - 2
    }
}

#[async_trait]
impl Tool for Stuck {
    fn spec(&self) -> ToolSpec {
        spec("stuck")
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        let _present = self.present.clone();
        std::future::pending().await
    }
}

/// Ends when it is let through. Notes how many of its calls were under way at once.
#[derive(Clone)]
pub(crate) struct Gated {
    pub(crate) gate: Arc<Semaphore>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Gated {
    pub(crate) fn new() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), running: Arc::default(), most: Arc::default() }
    }
}

#[async_trait]
impl Tool for Gated {
    fn spec(&self) -> ToolSpec {
        spec("gated")
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let now = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        call.output.write(OutputStream::Stdout, "working").await;
        self.gate.acquire().await.unwrap().forget();
        self.running.fetch_sub(1, Ordering::Relaxed);
        ToolAnswer::ok("done")
    }
}

pub(crate) struct Broken;

#[async_trait]
impl Tool for Broken {
    fn spec(&self) -> ToolSpec {
        spec("broken")
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        if call.call_id.starts_with("panic") {
            panic!("out of order");
        }
        ToolAnswer::error("no such file")
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_tools_run_at_once_than_allowed() {
    let ids = ["a", "b", "c", "d", "e", "f", "g"];
    let tool = Gated::new();
    let settings = Settings { max_parallel_tools: 3, ..Settings::default() };
    let provider = Scripted::new([ask("gated", &ids), answer("all done")]);
    let world = World::of(builder(provider).tool(tool.clone()).settings(settings));
    let mut watcher = world.say("hi").await;
    for id in &ids[..3] {
        watcher.until(&format!("tool-output {id} working")).await;
    }
    assert_eq!(tool.running.load(Ordering::Relaxed), 3);
    tool.gate.add_permits(ids.len());
    let lines = watcher.turn().await;
    for id in ids {
        let results = lines.iter().filter(|line| **line == format!("tool-result {id} done")).count();
        assert_eq!(results, 1, "one result for {id}");
    }
    assert_eq!(tool.most.load(Ordering::Relaxed), 3);
    assert_eq!(world.history().await.iter().filter(|line| line.starts_with("tool-result")).count(), 7);
}

#[tokio::test(start_paused = true)]
async fn live_output_is_shown_and_not_kept() {
    let tool = Gated::new();
    let world = World::of(builder(Scripted::new([ask("gated", &["a"]), answer("ok")])).tool(tool.clone()));
    tool.gate.add_permits(1);
    let lines = world.say("hi").await.turn().await;
    let told = [
        "user-message hi",
        "turn-start",
        "tool-call a",
        "step-complete",
        "tool-output a working",
        "tool-result a done",
        "text-delta ok",
        "step-complete",
        "done stop",
        "turn-sealed",
    ];
    assert_eq!(lines, told);
    assert_eq!(world.history().await, ["text hi", "tool-call a", "tool-result a done", "text ok"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_or_does_not_exist_is_the_models_business() {
    let provider = Scripted::new([ask("nowhere", &["a"]), ask("broken", &["b"]), answer("ok")]);
    let world = World::of(builder(provider.clone()).tool(Broken));
    assert!(world.say("hi").await.turn().await.contains(&"done stop".to_owned()));
    let history = world.history().await;
    let unknown = "tool-result a (tool failed: there is no tool \"nowhere\"; there are: broken)";
    assert_eq!(history[2], unknown);
    assert_eq!(history[4], "tool-result b no such file");
    assert_eq!(provider.requests()[2].messages.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_ends_its_turn_and_no_other() {
    let provider = Scripted::new([ask("stuck", &["s"]), ask("broken", &["panic", "b"]), answer("ok")]);
    let world = World::of(builder(provider).tool(Broken).tool(Stuck::new()));
    let other = World { orchestrator: world.orchestrator.clone(), id: "other".into() };
    let mut others = other.say("hi").await;
    others.until("step-complete").await;
    let lines = world.say("hi").await.turn().await;
    assert!(lines.contains(&"error the tool \"broken\" panicked: out of order".to_owned()), "{lines:?}");
    let ends = lines.iter().filter(|line| line.starts_with("done") || *line == "turn-sealed");
    assert_eq!(ends.collect::<Vec<_>>(), ["done error", "turn-sealed"]);
    for id in ["panic", "b"] {
        let results = world.history().await;
        let start = format!("tool-result {id} ");
        assert_eq!(results.iter().filter(|line| line.starts_with(&start)).count(), 1, "{results:?}");
    }
    assert!(world.say("again").await.turn().await.contains(&"text-delta ok".to_owned()));
    assert!(other.stop().await);
    assert!(others.turn().await.contains(&"done aborted".to_owned()));
}

/// Says a lot.
struct Long;

#[async_trait]
impl Tool for Long {
    fn spec(&self) -> ToolSpec {
        spec("long")
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok(format!("begin {} end", "x".repeat(1 << 20)))
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_long_result_both_ends_are_kept_and_the_rest_is_counted() {
    let provider = Scripted::new([ask("long", &["a"]), answer("ok")]);
    let world = World::of(builder(provider).tool(Long).max_tool_result(20));
    let told = world.say("hi").await.turn().await;
    let cut = "begin xxxx\n[... 1048566 bytes of this result were left out here ...]\nxxxxxx end";
    assert!(told.contains(&format!("tool-result a {cut}")), "{told:?}");
    assert_eq!(world.history().await[2], format!("tool-result a {cut}"));
    let world = World::of(builder(Scripted::new([ask("long", &["a"]), answer("ok")])).tool(Long));
    world.say("hi").await.turn().await;
    assert!(world.history().await[2].len() < (256 << 10) + 100);
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_the_tools() {
    let tool = Stuck::new();
    let world = World::of(builder(Scripted::new([ask("stuck", &["a", "b"])])).tool(tool.clone()));
    let mut watcher = world.say("hi").await;
    watcher.until("step-complete").await;
    while tool.running() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(world.stop().await);
    watcher.turn().await;
    world.orchestrator.stop(&world.id).await.unwrap();
    assert_eq!(tool.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_eager_tool_runs_while_the_model_speaks() {
    for eager_tools in [true, false] {
        let tool = Gated::new();
        tool.gate.add_permits(1);
        let call = vec![tool_call("a", "gated"), Cue::Pause(std::time::Duration::from_secs(1)), finish()];
        let settings = Settings { eager_tools, ..Settings::default() };
        let provider = Scripted::new([call, answer("ok")]);
        let world = World::of(builder(provider).tool(tool).settings(settings));
        let lines = world.say("hi").await.turn().await;
        let place = |line: &str| lines.iter().position(|found| found == line).unwrap();
        assert_eq!(place("tool-result a done") < place("step-complete"), eager_tools);
        assert_eq!(world.history().await, ["text hi", "tool-call a", "tool-result a done", "text ok"]);
    }
}

/// Prints without end, as far as anyone can tell, and then ends.
struct Chatty;

#[async_trait]
impl Tool for Chatty {
    fn spec(&self) -> ToolSpec {
        spec("chatty")
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let line = "x".repeat(16 << 10);
        for _ in 0..1_000 {
            call.output.write(OutputStream::Stdout, line.clone()).await;
        }
        ToolAnswer::ok("done")
    }
}

#[tokio::test(start_paused = true)]
async fn of_endless_output_a_bound_is_shown_and_the_rest_of_the_turn_is_all_there() {
    let gated = Gated::new();
    let script = Scripted::new([ask("chatty", &["a"]), ask("gated", &["b"]), answer("hello")]);
    let world = World::of(builder(script).tool(Chatty).tool(gated.clone()).max_live_output(256 << 10));
    let mut watcher = world.say("hi").await;
    watcher.until("tool-call b").await;
    // The live log has forgotten most of it by now: who comes late is told all the same, from the journal.
    let mut late = world.watch(None).await;
    gated.gate.add_permits(1);
    let frames = late.frames().await;
    let printed: usize = frames.iter().filter_map(|frame| printed(frame, "a")).map(|text| text.len()).sum();
    assert!((256 << 10..257 << 10).contains(&printed), "{printed} bytes are shown");
    let lines = crate::support::lines(&frames);
    assert_eq!(lines[0], "user-message hi", "from the start of the turn");
    let rest: Vec<_> = lines.iter().filter(|line| !line.starts_with("tool-output a")).collect();
    let told = rest.iter().position(|line| **line == "tool-result a done").expect("its result is told");
    assert!(rest[told..].iter().any(|line| **line == "tool-output b working"));
    let note = frames.iter().filter_map(printed_note).count();
    assert_eq!(note, 1, "what is missing is told once");
}

/// What that call printed.
fn printed(frame: &everturn_orchestrator::Frame, call: &str) -> Option<String> {
    match crate::support::event(frame).body {
        everturn_wire::EventBody::ToolOutput { tool_call_id, data, step_id, .. } if tool_call_id == call => {
            assert!(step_id.is_some(), "output names its step");
            Some(data)
        }
        _ => None,
    }
}

fn printed_note(frame: &everturn_orchestrator::Frame) -> Option<String> {
    printed(frame, "a").filter(|data| data.contains("further output is not shown"))
}
