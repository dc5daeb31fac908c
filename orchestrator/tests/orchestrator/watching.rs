//! Who looks at a conversation, who drives it, and what it waits for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Clock, Commit, Cursor, Definition, Error, Head, Journal, Moment, Orchestrator, SystemClock, TurnRecord,
    Version, Wait, Window,
    kernel::{Effects, Millis, Prompt, Settings, Turn},
};
use everturn_provider::Scripted;
use everturn_wire::{ConversationStatus, DoneReason};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, builder, overloaded_with_hint, refused_with_hint},
};

/// A process that finds this turn in its journal, unsealed.
async fn left(storage: &Storage, wait: Wait) {
    let mut effects = Effects::new();
    let prompt = Prompt { text: "hi".to_owned(), images: Vec::new() };
    let turn = Turn::begin("t".into(), Settings::default(), prompt, Millis(1), &mut effects);
    let head = Head {
        created_at: Millis(1),
        last_activity_at: Millis(1),
        title: "hi".to_owned(),
        status: ConversationStatus::Active,
        end_reason: None,
        model: Some("key/model".to_owned()),
        end: Cursor::default(),
        last_seq: 0,
    };
    let (snapshot, definition) = (turn.snapshot(), Definition::new("key/model"));
    let record = TurnRecord { snapshot, wait, from: Cursor::default(), first_seq: 1, definition };
    storage.append(&"c".into(), Version(0), Commit::new(head).turn(record)).await.unwrap();
}

async fn look(world: &World) {
    let status = world.orchestrator.status(&world.id).await.unwrap();
    assert_eq!((status.is_active, status.status), (true, ConversationStatus::Active));
    world.orchestrator.history(&world.id, Window::default()).await.unwrap();
    world.orchestrator.metrics(&world.id).await.unwrap();
    drop(world.watch(None).await);
}

#[tokio::test(start_paused = true)]
async fn who_only_looks_takes_no_turn_up() {
    let storage = Storage::new(|_| Mishap::Nothing);
    left(&storage, Wait::Now).await;
    let provider = Scripted::new([answer("hello")]);
    let world = World::of(builder(provider.clone()).journal(storage.clone()));
    for _ in 0..3 {
        look(&world).await;
        sleep(Duration::from_secs(3_600)).await;
    }
    assert_eq!((provider.calls(), storage.appends()), (0, 1), "watching is not owning");
    let mut watcher = world.watch(None).await;
    // Who would start a turn has this one go on first.
    assert!(matches!(world.start("me too").await, Err(Error::Busy { .. })));
    watcher.until("turn-sealed").await;
    assert_eq!(provider.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_conversation_alone_is_resumed() {
    let storage = Storage::new(|_| Mishap::Nothing);
    left(&storage, Wait::Now).await;
    let provider = Scripted::new([answer("hello")]);
    let world = World::of(builder(provider.clone()).journal(storage.clone()));
    world.orchestrator.restore().await.unwrap();
    assert!(!world.orchestrator.resume_one(&"other".into()).await.unwrap());
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!((provider.calls(), storage.appends()), (0, 1));
    let mut watcher = world.watch(None).await;
    assert!(world.orchestrator.resume_one(&world.id).await.unwrap());
    watcher.until("turn-sealed").await;
    assert_eq!(provider.calls(), 1);
    assert!(!world.orchestrator.resume_one(&world.id).await.unwrap(), "it is sealed");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_a_person_is_left_alone_until_one_comes() {
    let storage = Storage::new(|_| Mishap::Nothing);
    left(&storage, Wait::Person { until: None }).await;
    let provider = Scripted::new([answer("hello")]);
    let world = World::of(builder(provider.clone()).journal(storage.clone()));
    assert_eq!(world.orchestrator.resume().await.unwrap(), 0);
    for _ in 0..3 {
        sleep(Duration::from_secs(24 * 3_600)).await;
        look(&world).await;
    }
    // Who would start a turn does not have this one go on either.
    assert!(matches!(world.start("me too").await, Err(Error::Busy { .. })));
    assert_eq!((provider.calls(), storage.appends()), (0, 1));
    let mut watcher = world.watch(None).await;
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    let figures = world.orchestrator.metrics(&world.id).await.unwrap();
    assert_eq!(figures[0].reason, Some(DoneReason::Aborted));
}

#[tokio::test(start_paused = true)]
async fn a_person_who_does_not_come_is_waited_for_until_then() {
    let storage = Storage::new(|_| Mishap::Nothing);
    let clock = SystemClock::new();
    let until = Moment { at: clock.now().plus(3_600_000), decided_ms: 3_600_000 };
    left(&storage, Wait::Person { until: Some(until) }).await;
    let provider = Scripted::new([answer("hello")]);
    let world = World::of(builder(provider.clone()).journal(storage).clock(Arc::new(clock)));
    assert_eq!(world.orchestrator.resume().await.unwrap(), 1);
    let mut watcher = world.watch(None).await;
    sleep(Duration::from_secs(3_500)).await;
    assert_eq!(provider.calls(), 0);
    watcher.until("turn-sealed").await;
    assert_eq!(provider.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_model_an_unsealed_turn_stays_until_it_is_stopped() {
    let storage = Storage::new(|_| Mishap::Nothing);
    left(&storage, Wait::Now).await;
    let world = World::of(Orchestrator::builder().journal(storage.clone()));
    world.orchestrator.resume().await.unwrap();
    look(&world).await;
    let (orchestrator, id) = (&world.orchestrator, &world.id);
    let queued = orchestrator.enqueue(id, "and then".to_owned(), None).await;
    assert_eq!(queued.unwrap_err(), Error::NoModel { id: id.clone() });
    assert_eq!(storage.appends(), 1);
    let mut watcher = world.watch(None).await;
    assert!(orchestrator.close(id).await.unwrap());
    watcher.until("done aborted").await;
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_never_loads_holds_up_no_other() {
    let storage = Storage::new(|_| Mishap::Nothing);
    let calls =
        [overloaded_with_hint(60_000), overloaded_with_hint(120_000), answer("hello"), answer("there")];
    let world = World::of(builder(Scripted::new(calls)).journal(storage.clone()));
    let other = World { orchestrator: world.orchestrator.clone(), id: "other".into() };
    world.say("hi").await.until("provider-retry").await;
    other.say("hi").await.until("provider-retry").await;
    *storage.stuck.lock().unwrap() = Some(world.id.clone());
    let (orchestrator, id) = (world.orchestrator.clone(), world.id.clone());
    let stuck = tokio::spawn(async move { orchestrator.status(&id).await });
    // The timer, too, comes to the one that is stuck first.
    sleep(Duration::from_secs(90)).await;
    let status = timeout(Duration::from_secs(1), other.orchestrator.status(&other.id)).await;
    assert!(status.expect("it does not wait for the other").unwrap().is_active);
    let fresh = World { orchestrator: world.orchestrator.clone(), id: "fresh".into() };
    timeout(Duration::from_secs(1), fresh.start("hi")).await.expect("it does not wait either").unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(other.history().await, ["text hi", "text there"]);
    assert!(!stuck.is_finished());
}

#[tokio::test(start_paused = true)]
async fn retry_now_reaches_a_parked_turn_while_a_message_is_saved() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    // The appends are: a turn, its wait, and the message that wakes it.
    let storage = Storage::new(move |n| if n == 2 { Mishap::Waits(held.clone()) } else { Mishap::Nothing });
    let provider = Scripted::new([refused_with_hint(3_600_000), answer("hello")]);
    let world = World::of(builder(provider.clone()).journal(storage.clone()));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    let (orchestrator, id) = (world.orchestrator.clone(), world.id.clone());
    let queued = tokio::spawn(async move { orchestrator.enqueue(&id, "and then".to_owned(), None).await });
    while storage.appends() < 3 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(world.orchestrator.retry_now(&world.id).await.unwrap(), "there is a wait to skip");
    gate.add_permits(1);
    assert!(!queued.await.unwrap().unwrap().started_turn);
    timeout(Duration::from_secs(60), watcher.until("text-delta hello")).await.expect("the wait is skipped");
}

#[tokio::test(start_paused = true)]
async fn a_close_that_is_refused_as_busy_closes_nothing() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let storage = Storage::new(move |n| if n == 2 { Mishap::Waits(held.clone()) } else { Mishap::Nothing });
    let world = World::of(builder(Scripted::new([refused_with_hint(3_600_000)])).journal(storage.clone()));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    // The turn is woken and being saved, and takes nothing in meanwhile.
    let mut stops = 0;
    while world.orchestrator.stop(&world.id).await == Ok(true) {
        stops += 1;
        tokio::task::yield_now().await;
    }
    assert!(stops > 32, "{stops}");
    let error = world.orchestrator.close(&world.id).await.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    gate.add_permits(1);
    watcher.until("turn-sealed").await;
    assert_eq!(watcher.until("status").await, ["status idle"]);
    assert_eq!(world.status().await, ConversationStatus::Idle);
}

/// Breaks whenever it is asked, while it is set to.
#[derive(Default)]
struct Moody {
    clock: SystemClock,
    breaks: AtomicBool,
}

#[async_trait]
impl Clock for Moody {
    fn now(&self) -> Millis {
        assert!(!self.breaks.load(Ordering::Relaxed), "no hands");
        self.clock.now()
    }

    async fn sleep(&self, delay: Duration) {
        self.clock.sleep(delay).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_panics_as_turns_are_taken_up_stops_no_later_wake_up() {
    let clock = Arc::new(Moody::default());
    let calls =
        [overloaded_with_hint(60_000), overloaded_with_hint(120_000), answer("hello"), answer("there")];
    let world = World::of(builder(Scripted::new(calls)).clock(clock.clone()));
    let other = World { orchestrator: world.orchestrator.clone(), id: "other".into() };
    world.say("hi").await.until("provider-retry").await;
    other.say("hi").await.until("provider-retry").await;
    sleep(Duration::from_secs(59)).await;
    clock.breaks.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(2)).await;
    clock.breaks.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.history().await, ["text hi", "text hello"]);
    assert_eq!(other.history().await, ["text hi", "text there"]);
}
