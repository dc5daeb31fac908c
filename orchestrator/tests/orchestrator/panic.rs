//! Code of the embedder that panics ends its own turn and nothing else.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use everturn_orchestrator::{
    Frame,
    kernel::{Provider, Request, Retry, Schedule, StreamEvent},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{ConversationStatus, DoneReason};
use futures_util::stream::BoxStream;

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, builder, lines, refused, text},
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
