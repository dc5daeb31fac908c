//! A fake clock, and the executor that advances it.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use everturn_kernel::Millis;

/// The start time of every script.
pub const START: Millis = Millis(1_700_000_000_000);

/// Maximum number of polls of a run. No script needs more unless the future spins.
const MOST_POLLS: u32 = 200_000;

/// A fake clock with an executor. Time advances only when the future being run waits, directly to the end of the next
/// sleep. Clones share the clock.
///
/// ```
/// use everturn_kernel::Millis;
/// use everturn_testkit::Clock;
///
/// let clock = Clock::new(Millis(1_000));
/// let nap = clock.sleep(8 * 3_600_000);
/// assert_eq!(clock.run(nap), Some(())); // at once
/// assert_eq!(clock.now(), Millis(28_801_000));
/// assert_eq!(clock.run(std::future::pending::<()>()), None); // nothing will ever wake it
/// ```
#[derive(Clone)]
pub struct Clock(Arc<Mutex<Hands>>);

struct Hands {
    /// Never goes back. Sleeps use it.
    steady: u64,
    /// The displayed time. Can be set.
    wall: u64,
    timers: Vec<(u64, Waker)>,
    stopped: bool,
}

impl Clock {
    /// Creates a clock that shows this time.
    pub fn new(now: Millis) -> Self {
        Self(Arc::new(Mutex::new(Hands { steady: 0, wall: now.0, timers: Vec::new(), stopped: false })))
    }

    /// Returns the displayed time.
    pub fn now(&self) -> Millis {
        Millis(self.hands().wall)
    }

    /// Sets the displayed time, like a person or a time server would. Sleeps in progress are not affected.
    pub fn set(&self, now: Millis) {
        self.hands().wall = now.0;
    }

    /// Advances the clock by this many milliseconds. Call it between two runs. A sleep that is over by then ends in the
    /// next run.
    pub fn advance(&self, ms: u64) {
        let mut hands = self.hands();
        hands.steady = hands.steady.saturating_add(ms);
        hands.wall = hands.wall.saturating_add(ms);
    }

    /// Sleeps for this many milliseconds of the clock's time. Only ends inside [`run`](Self::run).
    pub fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send + use<> {
        let clock = self.clone();
        let until = self.hands().steady.saturating_add(ms);
        poll_fn(move |cx| {
            let mut hands = clock.hands();
            if hands.steady >= until {
                return Poll::Ready(());
            }
            hands.timers.push((until, cx.waker().clone()));
            Poll::Pending
        })
    }

    /// Runs a future to completion. Polls it only when it was woken. Otherwise, advances time to the end of the next
    /// sleep. Returns `None` if the future waits and nothing will wake it, or if [`stop`](Self::stop) was called.
    ///
    /// # Panics
    /// If the future was polled 200,000 times: it spins.
    pub fn run<F: Future>(&self, future: F) -> Option<F::Output> {
        self.hands().stopped = false;
        self.hands().timers.clear();
        let mut future = pin!(future);
        let bell = Arc::new(Bell(AtomicBool::new(true)));
        let waker = Waker::from(bell.clone());
        for _ in 0..MOST_POLLS {
            if self.is_stopped() {
                return None;
            }
            if bell.0.swap(false, Ordering::Relaxed) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Some(output);
                }
            } else if !self.to_next_timer() {
                return None;
            }
        }
        panic!("polled {MOST_POLLS} times: the future spins");
    }

    /// Ends the current [`run`](Self::run) like the end of the process: all work stops where it is.
    pub fn stop(&self) {
        self.hands().stopped = true;
    }

    /// Whether the last run was stopped.
    pub fn is_stopped(&self) -> bool {
        self.hands().stopped
    }

    fn to_next_timer(&self) -> bool {
        let mut hands = self.hands();
        let Some(next) = hands.timers.iter().map(|(at, _)| *at).min() else { return false };
        let passed = next.saturating_sub(hands.steady);
        hands.steady += passed;
        hands.wall = hands.wall.saturating_add(passed);
        hands.timers.retain(|(at, waker)| {
            let due = *at <= next;
            if due {
                waker.wake_by_ref();
            }
            !due
        });
        true
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().expect("no thread panics while it holds the clock")
    }
}

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
