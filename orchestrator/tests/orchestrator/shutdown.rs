//! Shutting down: what runs gets its grace, what waits costs none of it, and the next process goes on as if nothing had
//! been.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use everturn_orchestrator::{
    Builder, Cursor, Error, Exponential, Fault, Invocation, Journal as _, MemoryJournal, Policy, SystemClock,
    Tool,
    kernel::{StreamEvent, ToolAnswer, ToolSpec},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::Value;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use crate::{
    storage::{Mishap, Storage},
    support::{Watcher, World, answer, ask, builder, failure, finish, ms_since, refused_with_hint, text},
    tool::{Gated, Stuck},
};

const GRACE: Duration = Duration::from_secs(2);

/// One process after the other: all that they share is the journal.
struct Life {
    journal: Arc<MemoryJournal>,
    provider: Scripted,
    gated: Gated,
    again: Again,
    clock: Arc<SystemClock>,
}

impl Life {
    fn new(calls: impl IntoIterator<Item = Vec<Cue>>) -> Self {
        Self {
            journal: Arc::default(),
            provider: Scripted::new(calls),
            gated: Gated::new(),
            again: Again::default(),
            clock: Arc::default(),
        }
    }

    async fn process(&self) -> World {
        self.process_of(|builder| builder).await
    }

    async fn process_of(&self, change: impl FnOnce(Builder) -> Builder) -> World {
        let builder = builder(self.provider.clone()).journal(self.journal.clone()).clock(self.clock.clone());
        let schedule = Exponential { base: Duration::from_millis(1), ..Exponential::default() };
        let builder = builder.schedule(schedule).tool(self.gated.clone()).tool(Stuck::new());
        let world = World::of(change(builder.tool(self.again.clone())));
        world.orchestrator.resume().await.unwrap();
        world
    }
}

/// How long it took, in milliseconds.
async fn shut_down(world: &World, grace: Duration) -> u64 {
    let begun = Instant::now();
    world.orchestrator.shutdown(grace).await;
    ms_since(begun)
}

/// What is told until the orchestrator is down.
async fn to_the_end(watcher: &mut Watcher) -> Vec<String> {
    let mut frames = Vec::new();
    loop {
        match watcher.subscription.next().await {
            Ok(frame) => frames.push(frame),
            Err(error) => {
                assert_eq!(error, Error::ShuttingDown);
                return crate::support::lines(&frames);
            }
        }
    }
}

/// What a client shows that drops what was taken back.
fn shown(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        match line.split_once(' ') {
            Some(("text-delta", delta)) => text.push_str(delta),
            Some(("step-rewound", _)) => text.clear(),
            _ => {}
        }
    }
    text
}

fn count(lines: &[String], start: &str) -> usize {
    lines.iter().filter(|line| line.starts_with(start)).count()
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_any_more_and_everything_can_be_read() {
    let life = Life::new([answer("hello"), refused_with_hint(60_000)]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("status idle").await;
    let other = World { orchestrator: world.orchestrator.clone(), id: "other".into() };
    other.say("hi").await.until("provider-retry").await;
    assert_eq!(shut_down(&world, GRACE).await, 0, "nothing runs: nothing is waited for");
    let (started, queued) = (
        world.start("more").await.map(drop),
        world.orchestrator.enqueue(&world.id, "more".to_owned(), None).await.map(drop),
    );
    let (stopped, closed) =
        (other.orchestrator.stop(&other.id).await, other.orchestrator.close(&world.id).await);
    for refused in [started, queued, stopped.map(drop), closed.map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!((&error, error.fault()), (&Error::ShuttingDown, Fault::Unavailable));
    }
    assert_eq!(world.history().await, ["text hi", "text hello"]);
    assert!(!world.orchestrator.status(&world.id).await.unwrap().is_active);
    assert!(to_the_end(&mut watcher).await.is_empty());
    let all = to_the_end(&mut world.watch(Some(Cursor::default())).await).await;
    assert_eq!((count(&all, "user-message"), count(&all, "turn-sealed")), (1, 1), "{all:?}");
    world.orchestrator.down().await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_if_whoever_asked_for_it_does_not_wait_for_it() {
    let life = Life::new([vec![text("half "), Cue::Hang]]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    let asked = timeout(Duration::from_secs(1), world.orchestrator.shutdown(GRACE)).await;
    assert!(asked.is_err(), "the turn gets its grace");
    timeout(GRACE, world.orchestrator.down()).await.expect("the shutdown ends");
    assert!(to_the_end(&mut watcher).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_outlives_its_grace_is_saved_and_goes_on_without_a_gap() {
    let half = vec![text("half "), text("an ans"), Cue::Hang];
    let life = Life::new([half, answer("a whole answer")]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta half an ans").await;
    let mut all = world.watch(Some(Cursor::default())).await;
    assert_eq!(shut_down(&world, GRACE).await, 2_000);
    let told = to_the_end(&mut all).await;
    for end in ["error", "done", "turn-sealed", "step-rewound", "status idle"] {
        assert_eq!(count(&told, end), 0, "{told:?}");
    }
    assert!(to_the_end(&mut watcher).await.is_empty(), "each event once");
    let end = all.subscription.cursor();
    let stored = life.journal.load(&world.id).await.unwrap().unwrap();
    assert_eq!(stored.head.end, end, "all that was told is in the journal");
    let saved = serde_json::to_string(&stored.turn.unwrap().snapshot).unwrap();
    assert!(saved.contains("half an ans"), "{saved}");

    let next = life.process().await;
    next.watch(Some(end)).await.until("turn-sealed").await;
    for place in 0..=end.value() {
        let rest = next.watch(Some(Cursor::from_value(place))).await.until("turn-sealed").await;
        let ends = (count(&rest, "step-rewound"), count(&rest, "done"), count(&rest, "turn-sealed"));
        assert_eq!(ends, (1, 1, 1), "from {place}: {rest:?}");
        assert_eq!(shown(&rest), "a whole answer", "from {place}");
    }
    assert_eq!(next.history().await, ["text hi", "text a whole answer"]);
    assert_eq!(life.provider.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ends_in_its_grace_ends_as_ever() {
    let slow = vec![text("hel"), Cue::Pause(Duration::from_millis(500)), text("lo"), finish()];
    let life = Life::new([slow, answer("never asked")]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    assert!(!world.enqueue("and then").await);
    assert_eq!(shut_down(&world, GRACE).await, 500);
    let told = to_the_end(&mut watcher).await;
    assert!(told.contains(&"done stop".to_owned()), "{told:?}");
    // What waited in its queue is the next turn, which nobody asks a model for any more.
    assert_eq!(count(&told, "user-message and then"), 1, "{told:?}");
    assert_eq!(life.provider.calls(), 1);

    let next = life.process().await;
    next.watch(None).await.until("turn-sealed").await;
    assert_eq!(next.history().await, ["text hi", "text hello", "text and then", "text never asked"]);
}

#[tokio::test(start_paused = true)]
async fn waits_short_and_long_cost_no_grace_and_keep_their_end() {
    for hint_ms in [3_000, 60_000] {
        let life = Life::new([refused_with_hint(hint_ms), answer("hello")]);
        let begun = Instant::now();
        let world = life.process().await;
        let mut watcher = world.say("hi").await;
        watcher.until("provider-retry").await;
        tokio::time::advance(Duration::from_millis(1_000)).await;
        assert_eq!(shut_down(&world, Duration::from_secs(3_600)).await, 0, "{hint_ms}");
        assert!(to_the_end(&mut watcher).await.is_empty());
        let next = life.process().await;
        let cursor = watcher.subscription.cursor();
        let rest = next.watch(Some(cursor)).await.until("turn-sealed").await;
        assert!((hint_ms..=hint_ms + 50).contains(&ms_since(begun)), "{hint_ms}: {}", ms_since(begun));
        assert_eq!((shown(&rest).as_str(), count(&rest, "step-rewound")), ("hello", 0), "{rest:?}");
        assert_eq!(life.provider.calls(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_gets_the_grace_and_is_then_left_to_recovery() {
    let life = Life::new([ask("stuck", &["a"]), answer("well")]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("step-complete").await;
    assert_eq!(shut_down(&world, GRACE).await, 2_000);
    assert_eq!(count(&to_the_end(&mut watcher).await, "tool-result"), 0);
    let next = life.process().await;
    let rest = next.watch(Some(watcher.subscription.cursor())).await.until("turn-sealed").await;
    assert_eq!(count(&rest, "tool-result a (tool failed: interrupted by a restart"), 1, "{rest:?}");
    assert_eq!(shown(&rest), "well");
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_did_in_the_grace_counts_and_no_new_step_begins() {
    let life = Life::new([ask("gated", &["a"]), answer("well")]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("tool-output").await;
    let gate = life.gated.gate.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        gate.add_permits(1);
    });
    assert_eq!(shut_down(&world, GRACE).await, 300);
    assert_eq!(to_the_end(&mut watcher).await, ["tool-result a done"]);
    assert_eq!(life.provider.calls(), 1);
    let next = life.process().await;
    let rest = next.watch(Some(watcher.subscription.cursor())).await.until("turn-sealed").await;
    assert_eq!((count(&rest, "tool-"), shown(&rest).as_str()), (0, "well"), "{rest:?}");
    assert_eq!(next.history().await, ["text hi", "tool-call a", "tool-result a done", "text well"]);
}

#[tokio::test(start_paused = true)]
async fn in_the_grace_a_turn_can_still_be_stopped() {
    let life = Life::new([vec![text("hel"), Cue::Hang]]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    let begun = Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.stop().await
    };
    let ((), stopped) = tokio::join!(world.orchestrator.shutdown(GRACE), stop);
    assert!(stopped && ms_since(begun) == 100, "{}", ms_since(begun));
    let told = to_the_end(&mut watcher).await;
    assert_eq!((count(&told, "done aborted"), count(&told, "turn-sealed")), (1, 1), "{told:?}");
}

/// More often than a step may be taken up after a crash.
#[tokio::test(start_paused = true)]
async fn no_number_of_shutdowns_seals_a_turn() {
    let endless = (0..20).map(|_| vec![text("hel"), Cue::Hang]);
    let life = Life::new(endless.chain([answer("hello")]));
    let mut world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    for _ in 0..20 {
        shut_down(&world, Duration::ZERO).await;
        let cursor = watcher.subscription.cursor();
        world = life.process().await;
        watcher = world.watch(Some(cursor)).await;
        watcher.until("text-delta").await;
    }
    assert!(watcher.until("turn-sealed").await.contains(&"done stop".to_owned()));
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

/// May run again: hangs the first time, answers the second.
#[derive(Clone, Default)]
struct Again(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Again {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "again".to_owned(), description: String::new(), parameters: Value::Null }
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => std::future::pending().await,
            _ => ToolAnswer::ok("read"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_may_run_again_does_after_a_restart() {
    let life = Life::new([ask("again", &["a"]), answer("well")]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("step-complete").await;
    shut_down(&world, GRACE).await;
    let next = life.process().await;
    let rest = next.watch(Some(watcher.subscription.cursor())).await.until("turn-sealed").await;
    assert_eq!((count(&rest, "tool-result a read"), count(&rest, "tool-")), (1, 1), "{rest:?}");
    assert_eq!(life.again.0.load(Ordering::Relaxed), 2);
    assert_eq!(next.history().await, ["text hi", "tool-call a", "tool-result a read", "text well"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_a_rule_forbids_by_now_does_not_run_again_after_a_restart() {
    let life = Life::new([ask("again", &["a"]), answer("well")]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("step-complete").await;
    shut_down(&world, GRACE).await;
    let next = life.process_of(|builder| builder.tool_policy("again", Policy::Deny)).await;
    next.watch(Some(watcher.subscription.cursor())).await.until("turn-sealed").await;
    assert_eq!(life.again.0.load(Ordering::Relaxed), 1);
    let denied = "tool-result a (tool failed: the tool \"again\" may not be used here)";
    assert_eq!(next.history().await, ["text hi", "tool-call a", denied, "text well"]);
}

/// What has a turn look up that is being sealed does not have the next one begin.
#[tokio::test(start_paused = true)]
async fn a_turn_that_begins_with_a_seal_asks_nobody_any_more() {
    for grace in [GRACE, Duration::ZERO] {
        // The appends are: a turn, what waits in its queue, and its seal with the turn that follows.
        let gate = Arc::new(Semaphore::new(0));
        let held = gate.clone();
        let storage =
            Storage::new(move |n| if n == 2 { Mishap::Waits(held.clone()) } else { Mishap::Nothing });
        let slow = vec![text("hel"), Cue::Pause(Duration::from_millis(500)), text("lo"), finish()];
        let provider = Scripted::new([slow, vec![text("too late"), Cue::Hang]]);
        let world = World::of(builder(provider.clone()).journal(storage.clone()));
        let mut watcher = world.say("hi").await;
        watcher.until("text-delta").await;
        assert!(!world.enqueue("and then").await);
        watcher.until("text-delta lo").await;
        sleep(Duration::from_millis(1)).await;
        assert_eq!(storage.appends(), 3, "it is being sealed");
        let sealed = async {
            sleep(Duration::from_millis(100)).await;
            gate.add_permits(1);
        };
        let (took, ()) = tokio::join!(shut_down(&world, grace), sealed);
        assert_eq!((took, provider.calls()), (100, 1), "with a grace of {grace:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_process_ends_at_once_is_not_sealed_by_that() {
    let pause = Duration::from_secs(60);
    let life = Life::new([
        vec![text("half"), Cue::Pause(pause), StreamEvent::Failed(failure()).into()],
        answer("the whole"),
    ]);
    let world = life.process().await;
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta half").await;
    world.orchestrator.abandon();
    // The provider fails, as it does when the runtime goes.
    sleep(2 * pause).await;
    let stored = life.journal.load(&world.id).await.unwrap().unwrap();
    assert!(stored.turn.is_some(), "nothing came of the failure");
    let next = life.process().await;
    assert!(next.watch(None).await.until("status idle").await.contains(&"text-delta the whole".to_owned()));
}
