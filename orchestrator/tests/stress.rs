//! Commands that come at the very moment at which a wait ends, from other threads: none is lost.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Clock, Cursor, Exponential, Journal as _, MemoryJournal, Orchestrator, StartTurn,
    kernel::{FinishReason, Millis, Provider, Request, StreamEvent},
};
use everturn_sim::VirtualClock;
use everturn_wire::{Category, ConversationId, DoneReason, EventBody, Failure};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::{
    runtime::{Handle, Runtime},
    sync::oneshot,
};

/// Turns whose waits end at one moment: as many as the timer wakes in a row.
const AT_ONCE: usize = 50;
const ROUNDS: usize = 40;
const WAIT: Duration = Duration::from_secs(60);
/// After this much real time, what has not happened is lost.
const PATIENCE: Duration = Duration::from_secs(60);

struct Turned(VirtualClock);

#[async_trait]
impl Clock for Turned {
    fn now(&self) -> Millis {
        self.0.now()
    }

    async fn sleep(&self, delay: Duration) {
        self.0.sleep(delay).await;
    }
}

/// Refuses each turn's first call; then never answers, or at once.
struct Model {
    answers: AtomicBool,
    calls: AtomicUsize,
}

impl Provider for Model {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if request.op.attempt == 0 {
            let failure = Failure::new(Category::ServerError, true, "HTTP 502: away");
            return stream::iter([StreamEvent::Failed(failure)]).boxed();
        }
        if !self.answers.load(Ordering::Relaxed) {
            return stream::pending().boxed();
        }
        let text = StreamEvent::Text("hello".to_owned());
        stream::iter([text, StreamEvent::Finished(FinishReason::Stop)]).boxed()
    }
}

/// What a person does at that moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Command {
    Stop,
    RetryNow,
    Cancel,
}

impl Command {
    async fn give(self, orchestrator: &Orchestrator, id: &ConversationId) -> bool {
        let taken = match self {
            Self::Stop => orchestrator.stop(id).await,
            Self::RetryNow => orchestrator.retry_now(id).await,
            Self::Cancel => orchestrator.abort_retry(id).await,
        };
        taken.unwrap()
    }
}

struct Storm {
    orchestrator: Orchestrator,
    journal: Arc<MemoryJournal>,
    clock: VirtualClock,
    model: Arc<Model>,
}

impl Storm {
    fn new() -> Self {
        let model = Arc::new(Model { answers: AtomicBool::new(false), calls: AtomicUsize::new(0) });
        let (journal, clock) = (Arc::new(MemoryJournal::new()), VirtualClock::new(Millis(1_800_000_000_000)));
        let orchestrator = Orchestrator::builder()
            .model("test", "m", model.clone())
            .journal(journal.clone())
            .clock(Arc::new(Turned(clock.clone())))
            .schedule(Exponential { base: WAIT, jitter: 0.0, ..Exponential::default() })
            .build();
        Self { orchestrator, journal, clock, model }
    }

    /// Starts turns, and comes back when all of them wait, and are known to.
    async fn park(&self, ids: &[ConversationId]) {
        for id in ids {
            let start = StartTurn::new("hi").conversation(id.clone());
            self.orchestrator.start(start).await.unwrap();
        }
        // The first calls are made one after another, within a few seconds. No wait may end meanwhile, however long the
        // machine keeps one of these threads from running.
        let latest = self.clock.now().plus(WAIT.as_millis() as u64 / 2);
        for id in ids {
            while self.orchestrator.status(id).await.unwrap().retry.is_none() {
                if self.clock.now() < latest {
                    self.clock.advance(Duration::from_millis(1));
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Comes back when all are sealed; the timer pauses between those that it wakes.
    async fn seal(&self, ids: &[ConversationId]) {
        for id in ids {
            while self.journal.metrics(id).await.unwrap().is_empty() {
                self.clock.advance(Duration::from_millis(1));
                tokio::task::yield_now().await;
            }
        }
    }

    async fn seals(&self, id: &ConversationId) -> usize {
        let events = self.journal.events(id, Cursor::default(), usize::MAX).await.unwrap();
        let is_seal = |json: &[u8]| {
            let event: everturn_wire::AgentEvent = serde_json::from_slice(json).unwrap();
            event.body == EventBody::TurnSealed
        };
        events.iter().filter(|event| is_seal(&event.json)).count()
    }

    async fn round(&self, number: usize, command: Command) {
        self.model.answers.store(command == Command::RetryNow, Ordering::Relaxed);
        let ids: Vec<_> =
            (0..AT_ONCE).map(|n| ConversationId::from(format!("{command:?}-{number:04}-{n:04}"))).collect();
        let parked = tokio::time::timeout(PATIENCE, self.park(&ids)).await;
        assert!(parked.is_ok(), "not all turns wait: {:?}", self.journal.unsealed(Millis(u64::MAX)).await);
        let calls = self.model.calls.load(Ordering::Relaxed);
        // In every other round the conversations stay in memory.
        let mut watchers = Vec::new();
        for id in ids.iter().filter(|_| number.is_multiple_of(2)) {
            watchers.push(self.orchestrator.subscribe(id, None, true).await.unwrap());
        }
        let go = Arc::new(AtomicBool::new(false));
        let (tell, taken) = oneshot::channel();
        let (theirs, begin, orchestrator) = (ids.clone(), go.clone(), self.orchestrator.clone());
        let runtime = Handle::current();
        let person = thread::spawn(move || {
            while !begin.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let given = theirs.iter().map(|id| runtime.block_on(command.give(&orchestrator, id)));
            let _ = tell.send(given.filter(|taken| *taken).count());
        });
        go.store(true, Ordering::Release);
        self.clock.advance(WAIT);
        let taken = tokio::time::timeout(PATIENCE, taken).await.expect("a command does not return");
        let taken = taken.unwrap_or_else(|_| panic!("a command failed: {:?}", person.join()));
        if command != Command::RetryNow {
            assert_eq!(taken, AT_ONCE, "{command:?}: the turns were there");
        }
        let sealed = tokio::time::timeout(PATIENCE, self.seal(&ids)).await;
        assert!(sealed.is_ok(), "{command:?} was lost: {:?}", self.journal.unsealed(Millis(u64::MAX)).await);
        for id in &ids {
            let figures = self.journal.metrics(id).await.unwrap();
            let reason = figures[0].reason.clone().unwrap();
            let expected = match command {
                Command::Stop => [DoneReason::Aborted].as_slice(),
                Command::RetryNow => &[DoneReason::Stop],
                Command::Cancel => &[DoneReason::Error, DoneReason::Aborted],
            };
            assert!(expected.contains(&reason), "{command:?}: {reason:?}");
            assert_eq!((figures.len(), self.seals(id).await), (1, 1), "{command:?}: {id}");
        }
        let more = self.model.calls.load(Ordering::Relaxed) - calls;
        assert!(more <= AT_ONCE, "{command:?}: {more} calls for {AT_ONCE} waits that ended");
    }
}

/// Does it on threads of its own.
fn storm(command: Command) {
    let runtime: Runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let done = runtime.block_on(async {
        let storm = Arc::new(Storm::new());
        for number in 0..ROUNDS {
            let storm = storm.clone();
            // On a worker, as everything else.
            tokio::spawn(async move { storm.round(number, command).await }).await?;
        }
        Ok::<_, tokio::task::JoinError>(())
    });
    // A thread that is stuck must not keep the test from failing.
    runtime.shutdown_background();
    done.unwrap();
}

#[test]
fn no_stop_is_lost_at_the_end_of_a_wait() {
    storm(Command::Stop);
}

#[test]
fn no_retry_now_is_lost_at_the_end_of_a_wait() {
    storm(Command::RetryNow);
}

#[test]
fn no_cancel_is_lost_at_the_end_of_a_wait() {
    storm(Command::Cancel);
}
