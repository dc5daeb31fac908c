//! Code of the embedder that panics ends its own turn and nothing else.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Frame, Invocation, Orchestrator, Policy, RetryPolicy, Tool,
    kernel::{NextCall, Provider, Request, Retry, Schedule, StreamEvent, ToolAnswer, ToolSpec},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{ConversationStatus, DoneReason, Value};
use futures_util::stream::BoxStream;

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, builder, finish, lines, refused, text},
};

/// Panics in its first calls.
struct Broken {
    calls: AtomicUsize,
    panics: usize,
    then: Scripted,
}

impl Provider for Broken {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        if self.calls.fetch_add(1, Ordering::Relaxed) < self.panics {
            panic!("no adapter");
        }
        self.then.stream(request)
    }
}

/// Panics when it is asked.
struct Mad;

impl Schedule for Mad {
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
        panic!("no idea")
    }
}

/// The turn ends with this error; afterwards all is as ever.
async fn ends_and_goes_on(world: &World, error: &str, kept: &[&str]) {
    let mut watcher = world.say("hi").await;
    let lines = watcher.turn().await;
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert!(lines.contains(&format!("error {error}")), "{lines:?}");
    assert_eq!((count("error"), count("done error"), count("done"), count("turn-sealed")), (1, 1, 1, 1));
    watcher.until("status idle").await;
    assert_eq!(world.status().await, ConversationStatus::Idle);
    assert_eq!(world.end_reason().await, Some(DoneReason::Error));
    assert_eq!(world.history().await[1..], *kept);
    assert!(world.say("again").await.turn().await.contains(&"text-delta fine".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_when_called() {
    let error = "the provider of key/model panicked: no adapter";
    let broken = |panics| {
        World::new(Broken { calls: AtomicUsize::new(0), panics, then: Scripted::new([answer("fine")]) })
    };
    ends_and_goes_on(&broken(4), error, &[&format!("error {error}")]).await;
    let world = broken(3);
    let lines = world.say("hi").await.turn().await;
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("provider-retry"), count("error")), (3, 0), "{lines:?}");
    assert!(lines.contains(&"text-delta fine".to_owned()), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_while_it_speaks() {
    let script = vec![text("half"), Cue::Panic("lost it".to_owned())];
    let world = World::new(Scripted::new([script, answer("fine")]));
    let other = World { orchestrator: world.orchestrator.clone(), id: "other".into() };
    let error = "the provider of key/model panicked: lost it";
    ends_and_goes_on(&world, error, &["text half", &format!("error {error}")]).await;
    assert!(other.say("hi").await.turn().await.contains(&"text-delta fine".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_panics() {
    let world = World::of(
        builder(Scripted::new([refused(), answer("fine")]))
            .schedule(everturn_orchestrator::RetryPolicy::own(Mad)),
    );
    let error = "the turn broke: no idea";
    ends_and_goes_on(&world, error, &[&format!("error {error}")]).await;
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_panics_has_failed() {
    for broken in 0..3 {
        let plan = move |n| if n == broken { Mishap::Panics } else { Mishap::Nothing };
        let provider = Scripted::new([refused(), answer("fine")]);
        let world = World::of(builder(provider).journal(Storage::new(plan)));
        if let Ok(started) = world.start("hi").await {
            let mut watcher = world.watch(Some(started.from)).await;
            let mut told = Vec::new();
            while told.last().is_none_or(|frame: &Frame| !frame.ends_turn()) {
                match watcher.subscription.next().await {
                    Ok(frame) => told.push(frame),
                    Err(error) => {
                        assert!(error.to_string().contains("panicked: the journal broke"), "{error}");
                    }
                }
            }
            let ends = lines(&told).into_iter().filter(|line| line.starts_with("done")).collect::<Vec<_>>();
            assert_eq!(ends, ["done stop"]);
        }
        assert!(world.say("again").await.turn().await.contains(&"done stop".to_owned()));
    }
}

/// Says what it is, until it breaks.
struct Moody(Arc<AtomicBool>);

#[async_trait]
impl Tool for Moody {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "moody".to_owned(), description: String::new(), parameters: Value::Null }
    }

    fn is_offered(&self) -> bool {
        assert!(!self.0.load(Ordering::Relaxed), "not in the mood");
        true
    }

    fn policy(&self) -> Policy {
        assert!(!self.0.load(Ordering::Relaxed), "not in the mood");
        Policy::Allow
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok("")
    }
}

/// Chooses targets, until it breaks.
struct Fickle(Arc<AtomicBool>);

impl Schedule for Fickle {
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
        None
    }

    fn chooses_targets(&self) -> bool {
        true
    }

    fn next_target(&self, _: &NextCall<'_>) -> usize {
        assert!(!self.0.load(Ordering::Relaxed), "no target");
        0
    }
}

/// An answer that begins and takes a while.
fn slow() -> Vec<Cue> {
    vec![text("one"), Cue::Pause(Duration::from_secs(10)), finish()]
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_say_whether_it_is_offered_still_is() {
    let breaks = Arc::new(AtomicBool::new(false));
    let provider = Scripted::new([slow(), answer("two")]);
    let world = World::of(builder(provider.clone()).tool(Moody(breaks.clone())));
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    world.enqueue("and then").await;
    breaks.store(true, Ordering::Relaxed);
    let lines = watcher.until("turn-sealed").await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    let lines = watcher.until("turn-sealed").await;
    assert!(lines.contains(&"text-delta two".to_owned()), "{lines:?}");
    assert_eq!(provider.requests()[1].tools.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_panics_as_the_next_turn_begins_loses_nothing_of_the_last() {
    let breaks = Arc::new(AtomicBool::new(false));
    let provider = Arc::new(Scripted::new([slow(), answer("fine")]));
    let builder = Orchestrator::builder().model("a", "m", provider.clone()).model("b", "m", provider);
    let world = World::of(builder.route("r", ["a/m", "b/m"], RetryPolicy::own(Fickle(breaks.clone()))));
    let started = world.orchestrator.start(world.message("hi").model("route/r")).await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    watcher.until("text-delta").await;
    world.enqueue("and then").await;
    breaks.store(true, Ordering::Relaxed);
    let lines = watcher.until("turn-sealed").await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("queue-changed")).count(), 2, "{lines:?}");
    watcher.until("status idle").await;
    assert_eq!(world.history().await, ["text hi", "text one"]);
    breaks.store(false, Ordering::Relaxed);
    assert!(world.say("again").await.turn().await.contains(&"text-delta fine".to_owned()));
}
