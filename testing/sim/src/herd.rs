//! Many turns on one target, across the end of their process: what every store must pass on to the next process.

mod unhurried;

use std::{
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Clock as _, Journal, Orchestrator, StartTurn, StateStore, Window,
    kernel::{FinishReason, Millis, Provider, Request, StreamEvent},
};
use everturn_wire::{Category, ConversationId, Failure, Unreached};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::{runtime::Builder, time::sleep};

use crate::WallClock;
use unhurried::Unhurried;

/// The start of the first process, in epoch milliseconds.
const BEGIN: Millis = Millis(1_800_000_000_000);

/// A store as opened by a process.
pub type Store = (Arc<dyn Journal>, Arc<dyn StateStore>);

/// A target that fails in one way for some time and then answers, and the turns that ask it.
struct World<F> {
    open: F,
    /// When the target fails, in seconds.
    trouble: Range<u64>,
    failure: Failure,
    /// When it was asked, in milliseconds.
    asked: Arc<Mutex<Vec<u64>>>,
}

struct Target {
    clock: WallClock,
    trouble: Range<u64>,
    failure: Failure,
    asked: Arc<Mutex<Vec<u64>>>,
}

#[async_trait]
impl Provider for Target {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let at = self.clock.now().since(BEGIN);
        if let Ok(mut asked) = self.asked.lock() {
            asked.push(at);
        }
        let events = if self.trouble.contains(&(at / 1_000)) {
            vec![StreamEvent::Failed(self.failure.clone())]
        } else {
            vec![StreamEvent::Text("hello".to_owned()), StreamEvent::Finished(FinishReason::Stop)]
        };
        stream::iter(events).boxed()
    }
}

impl<F: Fn() -> Store> World<F> {
    fn new(open: F, trouble: Range<u64>, failure: Failure) -> Self {
        Self { open, trouble, failure, asked: Arc::default() }
    }

    /// Runs a process that begins at this second, and is killed after `does`.
    fn process(&self, second: u64, does: impl AsyncFnOnce(&Orchestrator)) {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime can be built");
        runtime.block_on(async {
            let clock = WallClock::new(BEGIN.plus(second * 1_000));
            let (trouble, failure, asked) = (self.trouble.clone(), self.failure.clone(), self.asked.clone());
            let target = Target { clock: clock.clone(), trouble, failure, asked };
            let (journal, state) = (self.open)();
            let orchestrator = Orchestrator::builder()
                .model("key", "model", Arc::new(target))
                .journal(Arc::new(Unhurried(journal)))
                .state(Arc::new(Unhurried(state)))
                .clock(Arc::new(clock))
                .build();
            orchestrator.resume().await.expect("the store can be read");
            does(&orchestrator).await;
        });
    }

    /// Returns how often the target was asked in this period, in seconds.
    fn asked(&self, when: Range<u64>) -> usize {
        let asked = self.asked.lock().expect("nobody panicked");
        asked.iter().filter(|at| (when.start * 1_000..when.end * 1_000).contains(*at)).count()
    }
}

fn id(turn: usize) -> ConversationId {
    format!("c{turn}").as_str().into()
}

async fn start(orchestrator: &Orchestrator, turns: Range<usize>) {
    for turn in turns {
        let turn = StartTurn::new("hi").conversation(id(turn));
        orchestrator.start(turn).await.expect("a turn begins");
    }
}

/// Returns how many turns have an answer.
async fn answered(orchestrator: &Orchestrator, turns: usize) -> usize {
    let mut answered = 0;
    for turn in 0..turns {
        let history = orchestrator.history(&id(turn), Window::default()).await;
        answered += usize::from(history.expect("a history").chunks.len() == 2);
    }
    answered
}

/// Checks that after a restart, a limited target is asked by one turn, and the others follow gradually, whether the
/// limit ends before or after the start of the process. `open` opens the same store for each process. Returns the
/// number of requests in each second after the limit.
///
/// # Panics
/// If the store fails the check.
pub fn asks_once_after_a_restart(turns: usize, open: impl Fn() -> Store) -> Vec<usize> {
    let limited = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
    let limited = Failure { hint_ms: Some(60_000), ..limited };
    let world = World::new(open, 0..330, limited);
    world.process(0, async |orchestrator| {
        start(orchestrator, 0..1).await;
        sleep(Duration::from_secs(1)).await;
        start(orchestrator, 1..turns - 1).await;
        sleep(Duration::from_secs(9)).await;
    });
    assert_eq!(world.asked(0..20), 1, "requests of the first process");
    world.process(20, async |orchestrator| {
        start(orchestrator, turns - 1..turns).await;
        sleep(Duration::from_secs(20)).await;
    });
    assert_eq!(world.asked(20..60), 0, "requests while the limit is known");
    world.process(300, async |orchestrator| {
        sleep(Duration::from_secs(29)).await;
        assert_eq!(world.asked(300..330), 1, "requests once all waits are over, while it is limited again");
        sleep(Duration::from_secs(300)).await;
        assert_eq!(answered(orchestrator, turns).await, turns);
    });
    assert_eq!(world.asked(330..1_000), turns, "each asked once more");
    let seconds: Vec<usize> = (330..630).map(|second| world.asked(second..second + 1)).collect();
    opens_gradually(&seconds);
    seconds
}

/// Checks that after the first request, at most sixteen follow in the first second, and that the total at most doubles
/// with each second.
fn opens_gradually(seconds: &[usize]) {
    let first = seconds.iter().position(|asked| *asked > 0).unwrap_or(0);
    let mut asked = 0;
    for (second, now) in seconds[first..].iter().enumerate() {
        asked += now;
        let most = 1 + (16_usize << second.min(30));
        assert!(asked <= most, "{asked} requests up to second {second}, at most {most} may be: {seconds:?}");
    }
}

/// Checks that requests return at a rising rate: no second has more than a few requests plus twice as many as all
/// seconds before it. For instant stores only: if turns wake slowly, their requests come later and closer
/// together.
///
/// # Panics
/// If the rate is too high.
pub fn comes_back_slowly(seconds: &[usize]) {
    let mut before = 0;
    for now in seconds {
        assert!(*now <= 2 * before + 18, "{now} requests in a second, after {before}");
        before += now;
    }
}

/// Checks that a target which answered before a restart, and is unreachable after it, counts as a local network
/// failure, which uses up no attempt.
///
/// # Panics
/// If the store fails the check.
pub fn is_offline_after_a_restart(open: impl Fn() -> Store) {
    let refused = Failure::new(Category::Network, true, "connection refused");
    let refused = Failure { unreached: Some(Unreached::NoConnection), ..refused };
    let world = World::new(open, 10..1_210, refused);
    world.process(0, async |orchestrator| {
        start(orchestrator, 0..1).await;
        sleep(Duration::from_secs(1)).await;
    });
    world.process(20, async |orchestrator| {
        start(orchestrator, 1..50).await;
        sleep(Duration::from_secs(1_300)).await;
        assert_eq!(answered(orchestrator, 50).await, 50);
        for turn in 1..50 {
            let metrics = orchestrator.metrics(&id(turn)).await.expect("its figures");
            assert_eq!(metrics[0].retries, None, "of turn {turn}");
        }
    });
}
