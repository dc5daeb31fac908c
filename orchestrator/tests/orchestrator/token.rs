//! The end of a caller's token ends what it reads, wherever and whenever that is polled.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    thread,
    time::Duration,
};

use everturn_orchestrator::{
    Caller, Error, Scope, StartTurn, Subscription, View,
    kernel::{FinishReason, Provider, Request, StreamEvent},
};
use everturn_provider::Scripted;
use everturn_wire::CallerName;
use futures_util::{
    FutureExt as _, StreamExt as _, poll,
    stream::{self, BoxStream},
};
use tokio::{
    task::{
        JoinSet,
        coop::{has_budget_remaining, poll_proceed},
        yield_now,
    },
    time::timeout,
};

use crate::support::{World, answer};

/// Subscriptions of one caller, and number of callers that are ended one after another.
const AT_ONCE: usize = 12;
const ROUNDS: usize = 300;
/// After this much time, what has not ended never does.
const PATIENCE: Duration = Duration::from_secs(60);

fn ann() -> Caller {
    Caller::new(CallerName::parse("ann").unwrap(), vec![Scope::Chat])
}

/// Subscribes to a turn from its beginning, this many times.
async fn subscribe(view: &View, times: usize) -> Vec<Subscription> {
    let turn = view.start(StartTurn::new("hi")).await.unwrap();
    let mut all = Vec::new();
    for _ in 0..times {
        all.push(view.subscribe(&turn.conversation_id, Some(turn.from), true).await.unwrap());
    }
    all
}

/// Returns a subscription for which there is nothing more to read.
async fn waiting(view: &View) -> Subscription {
    let mut waits = subscribe(view, 1).await.remove(0);
    while !waits.next().await.unwrap().ends_turn() {}
    while timeout(Duration::from_secs(1), waits.next()).await.is_ok() {}
    waits
}

#[tokio::test(start_paused = true)]
async fn whoever_polled_last_is_woken() {
    let ann = ann();
    let world = World::new(Scripted::new([answer("hello")]));
    let mut waits = waiting(&world.orchestrator.seen_by(&ann)).await;
    let mut next = async move { waits.next().await.map(drop) }.boxed();
    assert!(poll!(&mut next).is_pending());
    let moved = tokio::spawn(next);
    yield_now().await;
    ann.end();
    let told = timeout(PATIENCE, moved).await.expect("the task that it was moved to is woken").unwrap();
    assert!(matches!(told, Err(Error::TokenEnded)));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_done_enough_for_now_is_woken_too() {
    let ann = ann();
    let world = World::new(Scripted::new([answer("hello")]));
    let mut waits = waiting(&world.orchestrator.seen_by(&ann)).await;
    let moved = tokio::spawn(async move {
        let mut next = pin!(waits.next());
        let mut is_spent = false;
        let next = poll_fn(|cx| {
            while !is_spent && has_budget_remaining() {
                let Poll::Ready(step) = poll_proceed(cx) else { break };
                step.made_progress();
            }
            is_spent = true;
            next.as_mut().poll(cx)
        });
        next.await.map(drop)
    });
    for _ in 0..3 {
        yield_now().await;
    }
    ann.end();
    let told = timeout(PATIENCE, moved).await.expect("it is woken").unwrap();
    assert!(matches!(told, Err(Error::TokenEnded)));
}

/// Says a few words, one by one.
struct Words;

impl Provider for Words {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let words = stream::iter(0..100).then(async |n| {
            yield_now().await;
            StreamEvent::Text(format!("{n} "))
        });
        words.chain(stream::iter([StreamEvent::Finished(FinishReason::Stop)])).boxed()
    }
}

/// Ends a caller from another thread, at the moment at which so many of its subscriptions have begun to read, or to wait.
async fn round(number: usize) {
    let (ann, world) = (ann(), World::new(Words));
    let proxy = Caller::new(CallerName::parse("proxy").unwrap(), vec![Scope::Proxy]);
    let named = ann.clone().named_by(&proxy);
    let (waits_first, awaited) = (number % 2 == 1, number / 2 % (AT_ONCE + 1));
    let reached = Arc::new(AtomicUsize::new(0));
    let mut readers = JoinSet::new();
    for mut events in subscribe(&world.orchestrator.seen_by(&named), AT_ONCE).await {
        let reached = reached.clone();
        readers.spawn(async move {
            let mut has_reached = !waits_first;
            reached.fetch_add(usize::from(has_reached), Ordering::AcqRel);
            loop {
                match events.next().await {
                    Ok(frame) if frame.ends_turn() && !has_reached => {
                        has_reached = true;
                        reached.fetch_add(1, Ordering::AcqRel);
                    }
                    Ok(_) => {}
                    Err(error) => return (error, events),
                }
            }
        });
    }
    let ender = thread::spawn(move || {
        while reached.load(Ordering::Acquire) < awaited {
            thread::yield_now();
        }
        if number.is_multiple_of(3) { proxy.end() } else { ann.end() }
    });
    for left in (0..AT_ONCE).rev() {
        let told = timeout(PATIENCE, readers.join_next()).await;
        let (error, mut events) =
            told.unwrap_or_else(|_| panic!("{} wait on: {number}", left + 1)).unwrap().unwrap();
        assert!(matches!(error, Error::TokenEnded), "{error}");
        assert!(matches!(events.next().await, Err(Error::TokenEnded)), "nothing follows");
    }
    ender.join().unwrap();
}

#[test]
fn no_end_is_missed_by_those_who_wait_or_read() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let done = runtime.block_on(async {
        for number in 0..ROUNDS {
            tokio::spawn(round(number)).await?;
        }
        Ok::<_, tokio::task::JoinError>(())
    });
    // A thread that is stuck must not keep the test from failing.
    runtime.shutdown_background();
    done.unwrap();
}
