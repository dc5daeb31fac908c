//! The timer, which wakes parked turns when they are due.

mod index;

use std::{
    collections::HashSet,
    future,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::{Millis, Wait};
use everturn_wire::ConversationId;
use futures_util::FutureExt as _;
use tokio::{runtime::Handle, sync::Notify};

use crate::{
    clock::Clock,
    panic::panic_text,
    runs::{Running, Runs},
};
use index::Index;

/// Sorts before every other time: the index key of a turn that should resume as soon as possible.
pub(crate) const AT_ONCE: Millis = Millis(0);

/// After a journal failure, a turn is retried at the next multiple of this, in milliseconds. It thus has one place in
/// the index, however often requests for it fail in between.
const TRY_AGAIN_MS: u64 = 10_000;

/// Maximum sleep. Then the clock is read again, because it may have been set or the machine suspended.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Number of turns woken in a row before the timer pauses: a thousand per second, however many are due. After a long
/// suspend that may be all of them, and they call the same few providers.
const IN_A_ROW: u32 = 50;
const PAUSE: Duration = Duration::from_millis(50);

/// Interval at which single turns are woken while the journal fails, however many are due: each shows whether the
/// journal works again.
const PROBE: Duration = Duration::from_secs(1);

/// How long the timer waits for one wake-up before it moves on, so that a conversation that loads slowly, or never,
/// does not hold up others.
const PATIENCE: Duration = Duration::from_secs(1);

/// Resumes parked turns.
#[async_trait]
pub(crate) trait Wakes: Send + Sync + 'static {
    /// Resumes the conversation's turn, if its wait is over.
    async fn wake(&self, id: &ConversationId) -> Woken;
}

/// The outcome of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Nothing is left to do: the turn continues, or never will.
    Done,
    /// Its wait only ends at this time.
    Early(Millis),
    /// The journal failed.
    NotYet,
}

/// Conversations whose turn is parked, and what wakes them. Only an index: the journal is authoritative.
pub(crate) struct Timers {
    index: Index,
    clock: Arc<dyn Clock>,
    wakes: Box<dyn Wakes>,
    /// Notified when an earlier turn is added, or the orchestrator is dropped.
    changed: Arc<Notify>,
    runs: Runs,
    journal_fails: AtomicBool,
}

impl Timers {
    pub(crate) fn new(clock: Arc<dyn Clock>, wakes: impl Wakes) -> Self {
        Self {
            index: Index::default(),
            clock,
            wakes: Box::new(wakes),
            changed: Arc::default(),
            runs: Runs::default(),
            journal_fails: AtomicBool::new(false),
        }
    }

    /// Wakes the conversation at this time.
    pub(crate) fn wake_at(self: &Arc<Self>, at: Millis, id: ConversationId) {
        let is_first = self.index.insert(at, id);
        self.start(is_first);
    }

    /// Looks at a conversation at this time, as its turn may be able to continue before its wait ends. That may be in vain, and
    /// does not count as a turn.
    pub(crate) fn look_at(self: &Arc<Self>, at: Millis, id: ConversationId) {
        let is_first = self.index.look(at, id);
        self.start(is_first);
    }

    /// Wakes each conversation at its time.
    pub(crate) fn wake_all(self: &Arc<Self>, all: Vec<(Millis, ConversationId)>) {
        let is_first = self.index.extend(all);
        self.start(is_first);
    }

    /// Starts the timer if necessary. Notifies it if the earliest time has changed.
    fn start(self: &Arc<Self>, is_first: bool) {
        if is_first {
            self.changed.notify_one();
        }
        // No runtime: the process is ending and wakes no more turns.
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(running) = self.runs.begin() {
            runtime.spawn(run(running, Arc::downgrade(self), self.clock.clone(), self.changed.clone()));
        }
    }

    /// Wakes the conversation when the journal may work again. `counts`: its turn is this node's, and not in the index.
    pub(crate) fn try_again(self: &Arc<Self>, id: ConversationId, counts: bool) {
        let times = self.clock.now().0 / TRY_AGAIN_MS;
        let at = Millis((times + 1).saturating_mul(TRY_AGAIN_MS));
        if counts { self.wake_at(at, id) } else { self.look_at(at, id) }
    }

    /// Returns when the parked ones of these conversations will be woken.
    pub(crate) fn wakes_of(&self, ids: HashSet<&ConversationId>) -> Vec<(ConversationId, Millis)> {
        self.index.wakes_of(ids)
    }

    /// Returns the number of turns that will be woken.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Removes a conversation from the index.
    pub(crate) fn remove(&self, wait: Wait, id: &ConversationId) {
        self.index.remove(wait, id);
    }

    /// Records whether the journal failed when it was last used.
    pub(crate) fn journal_fails(&self, fails: bool) {
        self.journal_fails.store(fails, Ordering::Relaxed);
    }

    /// Returns how many turns may be woken in a row, and the pause that follows.
    fn pace(&self) -> (u32, Duration) {
        if self.journal_fails.load(Ordering::Relaxed) { (1, PROBE) } else { (IN_A_ROW, PAUSE) }
    }

    async fn wake(self: Arc<Self>, id: ConversationId, is_look: bool) {
        match AssertUnwindSafe(self.wakes.wake(&id)).catch_unwind().await {
            Ok(Woken::Done) => {}
            Ok(Woken::Early(until)) => self.wake_at(until, id),
            Ok(Woken::NotYet) => {
                self.journal_fails(true);
                self.try_again(id, !is_look);
            }
            Err(panic) => {
                let panic = panic_text(panic.as_ref());
                tracing::error!(conversation = %id, panic, "a parked turn could not be woken yet");
                self.try_again(id, !is_look);
            }
        }
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// Wakes parked turns when they are due, as long as the orchestrator exists.
async fn run(_running: Running, timers: Weak<Timers>, clock: Arc<dyn Clock>, changed: Arc<Notify>) {
    let mut in_a_row = 0;
    while let Some(strong) = timers.upgrade() {
        let (most, pause) = strong.pace();
        if in_a_row >= most {
            drop(strong);
            clock.sleep(pause).await;
            in_a_row = 0;
            continue;
        }
        match strong.index.due(clock.now()) {
            Ok((id, is_look)) => {
                tokio::select! {
                    biased;
                    _ = tokio::spawn(strong.wake(id, is_look)) => {}
                    () = clock.sleep(PATIENCE) => {}
                }
                in_a_row += 1;
            }
            Err(left) => {
                drop(strong);
                in_a_row = 0;
                idle(left, clock.as_ref(), &changed).await;
            }
        }
    }
}

/// Waits until the first turn may be due, the clock should be read again, or an earlier turn is added.
async fn idle(left: Option<Duration>, clock: &dyn Clock, changed: &Notify) {
    let sleep = async {
        match left {
            Some(left) => clock.sleep(left.min(LOOK_AGAIN)).await,
            None => future::pending().await,
        }
    };
    tokio::select! {
        // Fixed order, so that simulations can be replayed.
        biased;
        () = changed.notified() => {}
        () = sleep => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::SystemClock;

    /// Reports each wake-up; panics for one id, and never returns for another.
    struct Waker(mpsc::UnboundedSender<String>);

    #[async_trait]
    impl Wakes for Waker {
        async fn wake(&self, id: &ConversationId) -> Woken {
            self.0.send(id.to_string()).unwrap();
            match id.as_str() {
                "breaks" => panic!("it broke"),
                "hangs" => future::pending().await,
                _ => Woken::Done,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_are_woken_in_order_whatever_is_there() {
        let (told, mut woken) = mpsc::unbounded_channel();
        let clock = Arc::new(SystemClock::new());
        let now = clock.now();
        let timers = Arc::new(Timers::new(clock, Waker(told)));
        let at = |id: &str, after| (now.plus(after), ConversationId::from(id));
        timers.wake_all(vec![at("2", 2_000), at("5", 5_000)]);
        tokio::task::yield_now().await;
        timers.wake_at(now.plus(3_000), "3".into());
        timers.wake_all(vec![at("1", 1_000), at("2", 2_000), at("4", 4_000)]);
        timers.wake_all(Vec::new());
        let mut order = Vec::new();
        for _ in 0..5 {
            order.push(woken.recv().await.unwrap());
        }
        assert_eq!(order, ["1", "2", "3", "4", "5"]);
        assert!(now.plus(5_500) > timers.clock.now(), "none was late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_is_looked_at_early_is_counted_once() {
        let (told, mut woken) = mpsc::unbounded_channel();
        let clock = Arc::new(SystemClock::new());
        let now = clock.now();
        let timers = Arc::new(Timers::new(clock, Waker(told)));
        timers.wake_at(now.plus(60_000), "a".into());
        for after in [1_000, 2_000, 1_000] {
            timers.look_at(now.plus(after), "a".into());
            assert_eq!(timers.len(), 1);
        }
        for after in [1_000, 2_000] {
            assert_eq!(woken.recv().await.unwrap(), "a");
            assert_eq!((timers.len(), timers.clock.now().since(now) / 500), (1, after / 500));
        }
        assert_eq!(timers.wakes_of([&"a".into()].into()), [("a".into(), now.plus(60_000))]);
        assert_eq!(woken.recv().await.unwrap(), "a");
        assert_eq!(timers.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_breaks_or_hangs_as_it_is_woken_holds_up_no_other() {
        let (told, mut woken) = mpsc::unbounded_channel();
        let clock = Arc::new(SystemClock::new());
        let now = clock.now();
        let timers = Arc::new(Timers::new(clock, Waker(told)));
        for (id, after) in [("breaks", 1_000), ("hangs", 2_000), ("last", 3_000)] {
            timers.wake_at(now.plus(after), id.into());
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(woken.recv().await.unwrap());
        }
        order.sort();
        // The one that panicked is retried.
        assert_eq!(order, ["breaks", "breaks", "hangs", "last"]);
    }
}
