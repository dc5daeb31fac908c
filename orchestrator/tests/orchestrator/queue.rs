//! Messages that come while a turn runs, and closing.

use std::sync::Arc;

use everturn_orchestrator::{Cursor, Error, Fault};
use everturn_provider::{Cue, Scripted};
use everturn_wire::ConversationStatus;
use futures_util::future::join_all;
use tokio::{sync::Semaphore, task::yield_now};

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, ask, builder, finish, refused, refused_with_hint, text},
    tool::Gated,
};

/// One whose first answer does not end.
fn endless() -> Scripted {
    Scripted::new([vec![text("hel"), Cue::Hang], answer("next")])
}

#[tokio::test(start_paused = true)]
async fn a_message_is_injected_where_tool_results_go() {
    let tool = Gated::new();
    let provider = Scripted::new([ask("gated", &["a"]), answer("ok")]);
    let world = World::of(builder(provider.clone()).tool(tool.clone()));
    let mut watcher = world.say("hi").await;
    watcher.until("tool-output").await;
    assert!(!world.enqueue("left").await);
    assert!(!world.enqueue("right").await);
    tool.gate.add_permits(1);
    let told = [
        "queue-changed left",
        "queue-changed left right",
        "tool-result a done",
        "queue-changed",
        "steering left",
        "steering right",
        "text-delta ok",
        "step-complete",
        "done stop",
        "turn-sealed",
    ];
    assert_eq!(watcher.until("turn-sealed").await, told);
    let history = ["text hi", "tool-call a", "tool-result a done", "text left", "text right", "text ok"];
    assert_eq!(world.history().await, history);
    assert_eq!(provider.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_over_is_the_next_turn_at_once() {
    let world = World::new(endless());
    let mut changes = world.orchestrator.status_changes();
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    for message in ["one", "two"] {
        assert!(!world.enqueue(message).await);
    }
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    let next = ["user-message one", "turn-start", "queue-changed two", "text-delta next", "step-complete"];
    assert_eq!(watcher.until("step-complete").await, next);
    assert_eq!(watcher.until("turn-sealed").await, ["done stop", "turn-sealed"]);
    let last = ["user-message two", "turn-start", "queue-changed", "text-delta next", "step-complete"];
    assert_eq!(watcher.until("step-complete").await, last);
    assert_eq!(watcher.until("status").await, ["done stop", "turn-sealed", "status idle"]);
    assert_eq!(changes.recv().await.unwrap().status, ConversationStatus::Active);
    assert_eq!(changes.recv().await.unwrap().status, ConversationStatus::Idle);
    assert!(changes.try_recv().is_err(), "active all the way");
}

#[tokio::test(start_paused = true)]
async fn a_queued_message_can_be_taken_back() {
    let world = World::new(endless());
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    for message in ["one", "two"] {
        world.enqueue(message).await;
    }
    let cancelled = world.orchestrator.cancel_queued(&world.id, "one").await.unwrap();
    assert!(cancelled.cancelled);
    assert_eq!(cancelled.queue.len(), 1);
    assert!(!world.orchestrator.cancel_queued(&world.id, "one").await.unwrap().cancelled);
    assert!(!world.orchestrator.cancel_queued(&world.id, "three").await.unwrap().cancelled);
    world.stop().await;
    watcher.until("status").await;
    assert_eq!(world.history().await, ["text hi", "text hel", "text two", "text next"]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_has_an_end_however_many_push_at_once() {
    let world = Arc::new(World::new(endless()));
    world.say("hi").await.until("text-delta").await;
    let pushes = (0..100).map(|n| {
        let world = world.clone();
        async move { world.orchestrator.enqueue(&world.id, format!("{n}"), None).await }
    });
    let answers = join_all(pushes).await;
    let taken = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(taken, 32);
    for refused in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert_eq!(refused, &Error::QueueFull { id: world.id.clone(), limit: 32 });
        assert_eq!(refused.fault(), Fault::Conflict);
    }
    assert_eq!(world.orchestrator.cancel_queued(&world.id, "none").await.unwrap().queue.len(), 32);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_an_idle_conversation_starts_a_turn() {
    let world = World::new(Scripted::new([answer("hello")]));
    let mut watcher = world.say("hi").await;
    watcher.turn().await;
    assert!(world.enqueue("and now").await);
    watcher.turn().await;
    assert_eq!(world.history().await, ["text hi", "text hello", "text and now", "text hello"]);
    let unknown = world.orchestrator.enqueue(&"nobody".into(), "hi".to_owned(), None).await.unwrap_err();
    assert_eq!(unknown.fault(), Fault::Missing);
    let empty = world.orchestrator.enqueue(&world.id, String::new(), None).await.unwrap_err();
    assert_eq!(empty.fault(), Fault::Caller);
}

#[tokio::test(start_paused = true)]
async fn no_message_is_lost_where_it_meets_the_seal() {
    for slow in [0, 1, 3] {
        for before in 0..40 {
            let storage = Storage::new(move |_| Mishap::Slow(slow));
            let world = Arc::new(World::of(builder(Scripted::new([answer("hello")])).journal(storage)));
            let mut watcher = world.say("hi").await;
            for _ in 0..before {
                yield_now().await;
            }
            let pushes = ["one", "two", "three"].map(|text| {
                let world = world.clone();
                tokio::spawn(async move { world.enqueue(text).await })
            });
            let started = join_all(pushes).await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
            // Idle in between perhaps, but in the end all have had their turn.
            let mut told = Vec::new();
            for _ in 0..4 {
                told.extend(watcher.until("turn-sealed").await);
            }
            for (text, _) in ["one", "two", "three"].iter().zip(started).filter(|(_, started)| !started) {
                let is_named = |line: &String| line.starts_with("queue-changed") && line.contains(text);
                assert!(told.iter().any(is_named), "slow {slow}, before {before}, {text}: {told:?}");
            }
            let mut said: Vec<_> =
                world.history().await.into_iter().filter(|line| line != "text hello").collect();
            said.sort_unstable();
            assert_eq!(
                said,
                ["text hi", "text one", "text three", "text two"],
                "slow {slow}, before {before}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_turn_and_drops_the_queue() {
    for script in [vec![text("hel"), Cue::Hang], refused()] {
        let world = World::new(Scripted::new([script, answer("again")]));
        let mut watcher = world.say("hi").await;
        watcher.until("turn-start").await;
        yield_now().await;
        world.enqueue("dropped").await;
        assert!(world.orchestrator.close(&world.id).await.unwrap());
        watcher.until("queue-changed dropped").await;
        let end = watcher.until("done aborted").await;
        assert!(end.contains(&"queue-changed".to_owned()), "{end:?}");
        assert_eq!(watcher.until("status").await, ["turn-sealed", "status closed"]);
        assert!(!world.orchestrator.close(&world.id).await.unwrap(), "closed already");
        assert_eq!(world.status().await, ConversationStatus::Closed);
        assert!(!world.history().await.contains(&"text dropped".to_owned()));
        assert!(world.say("hi again").await.turn().await.contains(&"text-delta again".to_owned()));
        assert_eq!(world.status().await, ConversationStatus::Idle);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_conversation_can_be_closed() {
    let world = World::new(Scripted::new([answer("hello")]));
    let mut watcher = world.say("hi").await;
    watcher.turn().await;
    let mut changes = world.orchestrator.status_changes();
    assert!(!world.orchestrator.close(&world.id).await.unwrap());
    assert_eq!(watcher.until("status closed").await, ["status idle", "status closed"]);
    assert_eq!(changes.try_recv().unwrap().status, ConversationStatus::Closed);
    assert!(world.enqueue("open").await);
    assert_eq!(watcher.until("status").await, ["status active"]);
}

/// A conversation with one sealed turn whose journal then waits before it closes.
async fn about_to_close(appends: usize) -> (Arc<World>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let plan = move |n| if n == appends { Mishap::Waits(held.clone()) } else { Mishap::Nothing };
    let provider = Scripted::new([answer("hello")]);
    let world = Arc::new(World::of(builder(provider).journal(Storage::new(plan))));
    world.say("hi").await.until("status idle").await;
    (world, gate)
}

/// How many appends a turn that just answers makes.
const CALM: usize = 2;

#[tokio::test(start_paused = true)]
async fn a_message_that_meets_the_closing_opens_the_conversation_again() {
    let (world, gate) = about_to_close(CALM).await;
    let closing = tokio::spawn({
        let world = world.clone();
        async move { world.orchestrator.close(&world.id).await }
    });
    yield_now().await;
    let queued = tokio::spawn({
        let world = world.clone();
        async move { world.enqueue("late").await }
    });
    yield_now().await;
    gate.add_permits(1);
    assert_eq!(closing.await.unwrap(), Ok(false));
    assert!(queued.await.unwrap(), "it starts a turn");
    assert_eq!(world.history().await[..3], ["text hi", "text hello", "text late"]);
    world.watch(Some(Cursor::default())).await.until("user-message late").await;
}

#[tokio::test(start_paused = true)]
async fn who_asked_for_the_closing_may_leave() {
    let (world, gate) = about_to_close(CALM).await;
    let closing = tokio::spawn({
        let world = world.clone();
        async move { world.orchestrator.close(&world.id).await }
    });
    yield_now().await;
    closing.abort();
    assert!(closing.await.unwrap_err().is_cancelled());
    gate.add_permits(1);
    let mut watcher = world.watch(None).await;
    while world.start("open").await.is_err() {
        watcher.until("status closed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_just_being_sealed_can_be_closed() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let plan = move |n| if n + 1 == CALM { Mishap::Waits(held.clone()) } else { Mishap::Nothing };
    let world = World::of(builder(Scripted::new([answer("hello")])).journal(Storage::new(plan)));
    let mut watcher = world.say("hi").await;
    watcher.until("turn-start").await;
    yield_now().await;
    assert!(world.orchestrator.close(&world.id).await.unwrap());
    let release = async {
        yield_now().await;
        gate.add_permits(1);
    };
    let (starts_turn, ()) = tokio::join!(world.enqueue("late"), release);
    watcher.until("status closed").await;
    assert!(starts_turn, "the message came after the closing");
    watcher.until("user-message late").await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_keeps_what_waits() {
    let world = World::new(Scripted::new([refused(), vec![text("now"), finish()]]));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    world.enqueue("instead").await;
    assert!(world.stop().await);
    watcher.until("status idle").await;
    assert_eq!(world.history().await, ["text hi", "text instead", "text now"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_with_a_turn_that_waits_can_be_taken_back() {
    let world = World::new(Scripted::new([refused(), answer("hello")]));
    world.say("hi").await.until("provider-retry").await;
    world.enqueue("behind").await;
    yield_now().await;
    let cancelled = world.orchestrator.cancel_queued(&world.id, "behind").await.unwrap();
    assert!(cancelled.cancelled && cancelled.queue.is_empty());
    world.watch(None).await.until("status idle").await;
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_taken_back_while_its_turn_is_sealed_leaves_the_conversation_at_rest() {
    let world = World::new(endless());
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    world.enqueue("never mind").await;
    // Both are there before the turn takes in the first of them.
    assert!(world.stop().await);
    assert!(world.orchestrator.cancel_queued(&world.id, "never mind").await.unwrap().cancelled);
    watcher.until("status idle").await;
    assert_eq!(world.history().await, ["text hi", "text hel"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_twice_while_its_turn_is_sealed_is_one_message() {
    for is_queued in [true, false] {
        let world = World::new(endless());
        let mut watcher = world.say("hi").await;
        watcher.until("text-delta").await;
        if is_queued {
            assert!(!world.enqueue("again").await);
        }
        // All are there before the turn takes in the first of them.
        assert!(world.stop().await);
        let began = join_all([world.enqueue("again"), world.enqueue("again")]).await;
        assert_eq!(began, [false, false], "each gets its reply");
        watcher.until("status idle").await;
        assert_eq!(world.history().await, ["text hi", "text hel", "text again", "text next"], "{is_queued}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_began_a_turn_is_never_shown_as_queued_again() {
    for slow in [0, 2] {
        for (late, more) in (0..24).flat_map(|late| (0..24).map(move |more| (late, more))) {
            let storage = Storage::new(move |_| Mishap::Slow(slow));
            let calls = [answer("hello"), refused_with_hint(60_000), answer("hello")];
            let world = Arc::new(World::of(builder(Scripted::new(calls)).journal(storage)));
            let mut watcher = world.say("hi").await;
            let push = |text: &'static str, after: usize| {
                let world = world.clone();
                tokio::spawn(async move {
                    for _ in 0..after {
                        yield_now().await;
                    }
                    world.enqueue(text).await
                })
            };
            let pushes = [push("late", late), push("more", late + more)];
            assert!(join_all(pushes).await.iter().all(Result::is_ok));
            let mut told = Vec::new();
            for _ in 0..3 {
                told.extend(watcher.until("turn-sealed").await);
            }
            let said = told.iter().position(|line| line == "user-message late").unwrap_or(told.len());
            let is_late = |line: &String| line.starts_with("queue-changed") && line.contains("late");
            assert!(!told[said..].iter().any(is_late), "slow {slow}, late {late}, more {more}: {told:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_names_its_turn_does_not_end_the_next_one() {
    let script = || vec![text("hel"), Cue::Hang];
    let world = World::new(Scripted::new([script(), script()]));
    let first = world.start("hi").await.unwrap();
    let mut watcher = world.watch(Some(first.from)).await;
    watcher.until("text-delta").await;
    assert!(!world.enqueue("next").await);
    assert!(world.orchestrator.stop_turn(&world.id, &first.turn_id).await.unwrap());
    watcher.until("turn-sealed").await;
    watcher.until("text-delta").await;
    world.orchestrator.stop_turn(&world.id, &first.turn_id).await.unwrap();
    // Handled after that stop.
    assert!(!world.enqueue("then").await);
    assert_eq!(watcher.until("queue-changed").await, ["queue-changed then"], "the next turn goes on");
    assert!(world.stop().await);
    assert!(watcher.until("turn-sealed").await.contains(&"done aborted".to_owned()));
}
