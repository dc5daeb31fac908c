//! The clock is set, within a process and between two: no wait is longer than was decided, and whoever is due at once
//! is woken at a bounded pace. Each process is a runtime of its own with its own paused time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_kernel::{FinishReason, Millis, Provider, Request, StreamEvent};
use everturn_orchestrator::{
    Clock as _, Exponential, Journal, MemoryJournal, Orchestrator, Page, StartTurn, Wait,
};
use everturn_sim::WallClock;
use everturn_wire::{Category, ConversationId, ConversationStatus, Failure};
use futures_util::{StreamExt as _, stream};
use tokio::{runtime::Runtime, time::Instant};

const BEGIN: Millis = Millis(1_800_000_000_000);
const HOUR_MS: i64 = 3_600_000;
/// What every turn waits before its second call.
const WAIT: Duration = Duration::from_secs(30 * 60);
/// The timer looks at the clock at least so often.
const LOOK: Duration = Duration::from_secs(60);

/// Refuses each conversation's first call, and notes when the others come.
#[derive(Clone, Default)]
struct RefusesFirst {
    calls: Arc<Mutex<Vec<Instant>>>,
}

impl RefusesFirst {
    /// When calls were answered since then.
    fn since(&self, began: Instant) -> Vec<Duration> {
        self.calls.lock().unwrap().iter().map(|at| at.duration_since(began)).collect()
    }
}

impl Provider for RefusesFirst {
    fn stream(&self, request: Request) -> stream::BoxStream<'static, StreamEvent> {
        let facts = if request.op.attempt == 0 {
            vec![StreamEvent::Failed(Failure::new(Category::Overloaded, true, "HTTP 529: overloaded"))]
        } else {
            self.calls.lock().unwrap().push(Instant::now());
            vec![StreamEvent::Text("done".into()), StreamEvent::Finished(FinishReason::Stop)]
        };
        stream::iter(facts).boxed()
    }
}

fn process() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn orchestrator(journal: &Arc<MemoryJournal>, provider: &RefusesFirst, clock: &WallClock) -> Orchestrator {
    Orchestrator::builder()
        .model("test", "m", Arc::new(provider.clone()))
        .journal(journal.clone())
        .clock(Arc::new(clock.clone()))
        .schedule(Exponential { base: WAIT, max_delay: None, ..Exponential::default() })
        .build()
}

/// Starts turns, and returns when all of them wait.
async fn wait(orchestrator: &Orchestrator, journal: &MemoryJournal, turns: usize) {
    for number in 0..turns {
        let id = ConversationId::from(format!("c{number:06}"));
        let start = StartTurn::new("hello").conversation(id);
        orchestrator.start(start).await.unwrap();
    }
    while journal.unsealed(Millis(u64::MAX)).await.unwrap().iter().any(|turn| turn.wait == Wait::Now) {
        tokio::task::yield_now().await;
    }
}

/// When all that waits went on in a process that begins now and whose clock is off by so much.
fn resumed(journal: &Arc<MemoryJournal>, now: Millis, by_ms: i64) -> Vec<Duration> {
    process().block_on(async {
        let (provider, clock) = (RefusesFirst::default(), WallClock::new(now));
        clock.set(by_ms);
        let began = Instant::now();
        let next = orchestrator(journal, &provider, &clock);
        next.resume().await.unwrap();
        tokio::time::sleep(WAIT * 10).await;
        for (id, _) in journal.conversations(Page::default()).await.unwrap() {
            assert_eq!(next.status(&id).await.unwrap().status, ConversationStatus::Idle, "{id} is done");
        }
        provider.since(began)
    })
}

/// A journal whose turns were left after ten minutes of their wait.
fn left(turns: usize) -> (Arc<MemoryJournal>, Millis) {
    let journal = Arc::default();
    let now = process().block_on(async {
        let clock = WallClock::new(BEGIN);
        wait(&orchestrator(&journal, &RefusesFirst::default(), &clock), &journal, turns).await;
        tokio::time::sleep(WAIT / 3).await;
        clock.now()
    });
    (journal, now)
}

#[test]
fn a_wait_goes_on_where_it_was_after_a_restart() {
    let (journal, now) = left(1);
    assert_eq!(resumed(&journal, now, 0), [WAIT * 2 / 3]);
}

#[test]
fn a_clock_set_back_between_two_processes_makes_no_wait_longer_than_decided() {
    for hours in [1, 24 * 365] {
        let (journal, now) = left(3);
        assert_eq!(resumed(&journal, now, -hours * HOUR_MS), [WAIT; 3], "{hours} h back");
    }
    // Only so far back that less than the whole wait seems to be left.
    let (journal, now) = left(1);
    let five_minutes = 300_000;
    assert_eq!(resumed(&journal, now, -five_minutes), [WAIT * 2 / 3 + Duration::from_secs(300)]);
}

#[test]
fn a_wait_that_was_made_shorter_is_kept_so() {
    let (journal, now) = left(1);
    let now = process().block_on(async {
        let clock = WallClock::new(now);
        clock.set(-HOUR_MS);
        let next = orchestrator(&journal, &RefusesFirst::default(), &clock);
        next.resume().await.unwrap();
        tokio::time::sleep(WAIT / 3).await;
        clock.now()
    });
    assert_eq!(resumed(&journal, now, 0), [WAIT * 2 / 3]);
}

#[test]
fn a_clock_set_forward_between_two_processes_ends_the_waits_at_a_bounded_pace() {
    let (journal, now) = left(500);
    let calls = resumed(&journal, now, HOUR_MS);
    assert_eq!((calls.len(), calls[0]), (500, Duration::ZERO));
    is_paced(&calls, Duration::ZERO);
}

/// How long the one turn waits whose clock is set, by so much, after that long.
fn waited(after: Duration, by_ms: i64) -> Duration {
    process().block_on(async {
        let (journal, provider, clock) = (Arc::default(), RefusesFirst::default(), WallClock::new(BEGIN));
        let orchestrator = orchestrator(&journal, &provider, &clock);
        wait(&orchestrator, &journal, 1).await;
        let began = Instant::now();
        tokio::time::sleep(after).await;
        clock.set(by_ms);
        tokio::time::sleep(WAIT * 100).await;
        provider.since(began)[0]
    })
}

#[test]
fn a_clock_set_back_while_a_turn_is_parked_makes_its_wait_no_longer() {
    for after in [0, 1, 59, 60, 61, 600, 1_799].map(Duration::from_secs) {
        for back in [1, 24, 24 * 365] {
            assert_eq!(waited(after, -back * HOUR_MS), WAIT, "{back} h back after {after:?}");
        }
    }
}

#[test]
fn a_suspend_while_a_turn_is_parked_counts_as_waited_within_a_minute() {
    for after in [0, 1, 59, 60, 61, 600, 1_739].map(Duration::from_secs) {
        let waited = waited(after, 8 * HOUR_MS);
        assert!((after..=after + LOOK).contains(&waited), "{waited:?} after {after:?}");
    }
    let ten_minutes = 600_000;
    assert_eq!(
        waited(Duration::from_secs(90), ten_minutes),
        WAIT - Duration::from_millis(ten_minutes as u64)
    );
}

#[test]
fn after_a_suspend_all_are_woken_at_a_bounded_pace() {
    process().block_on(async {
        let (journal, provider, clock) = (Arc::default(), RefusesFirst::default(), WallClock::new(BEGIN));
        let orchestrator = orchestrator(&journal, &provider, &clock);
        wait(&orchestrator, &journal, 2_000).await;
        clock.set(8 * HOUR_MS);
        let began = Instant::now();
        tokio::time::sleep(WAIT).await;
        let calls = provider.since(began);
        assert_eq!(calls.len(), 2_000);
        is_paced(&calls, calls[0]);
    });
}

/// A thousand in a second, and not much less.
fn is_paced(calls: &[Duration], began: Duration) {
    for (number, at) in calls.iter().enumerate() {
        let at = (*at - began).as_millis() as usize;
        assert!(number <= at + 50, "call {number} comes {at} ms after the first");
        assert!(at <= number + 50, "call {number} comes only {at} ms after the first");
    }
}
