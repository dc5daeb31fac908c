//! A clock that is never set back.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::Millis;
use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::{Clock, whole_ms};
use crate::panic::panic_text;

/// How far the inner clock may show less than before without being taken for set back, in milliseconds: threads that
/// look at it at the same time tell their readings in any order.
const SLACK_MS: u64 = 1_000;

/// The time that turns live by: the inner clock's, followed forward and never back. Where that one is set back, time
/// goes on as if it had not been, by the monotonic clock: so no wait grows, and none shrinks.
pub(crate) struct Steady {
    inner: Arc<dyn Clock>,
    began: Instant,
    /// The latest moment that was told, and when that was, in milliseconds after `began`.
    latest: AtomicU64,
    told_at: AtomicU64,
    /// By how much this clock is ahead of the inner one, which was set back by so much.
    ahead: AtomicU64,
    setting: Mutex<()>,
}

impl Steady {
    pub(crate) fn new(inner: Arc<dyn Clock>) -> Self {
        let (latest, told_at, ahead) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let steady = Self { inner, began: Instant::now(), latest, told_at, ahead, setting: Mutex::new(()) };
        steady.latest.store(steady.shown(), Ordering::Relaxed);
        steady
    }

    /// What the inner clock shows. One that panics stands still: everybody asks it, and no turn is to break by that.
    fn shown(&self) -> u64 {
        // Before the clock is read: else a reading from before it was set back would be made up for as well.
        let ahead = self.ahead.load(Ordering::Acquire);
        match catch_unwind(AssertUnwindSafe(|| self.inner.now())) {
            Ok(now) => now.plus(ahead).0,
            Err(panic) => {
                tracing::error!(panic = panic_text(panic.as_ref()), "the clock panicked");
                self.latest.load(Ordering::Relaxed)
            }
        }
    }

    fn since_began(&self) -> u64 {
        whole_ms(self.began.elapsed())
    }

    fn tell(&self, moment: u64) -> Millis {
        self.told_at.fetch_max(self.since_began(), Ordering::Relaxed);
        Millis(self.latest.fetch_max(moment, Ordering::Relaxed).max(moment))
    }

    /// Makes up for what the inner clock was set back by, if it really was: seen by one thread at a time.
    fn make_up(&self) -> Millis {
        let _alone = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let (shown, latest) = (self.shown(), self.latest.load(Ordering::Relaxed));
        if shown.saturating_add(SLACK_MS) >= latest {
            return Millis(latest);
        }
        let passed = self.since_began().saturating_sub(self.told_at.load(Ordering::Relaxed));
        let now = latest.saturating_add(passed);
        self.ahead.fetch_add(now - shown, Ordering::Release);
        self.tell(now)
    }
}

#[async_trait]
impl Clock for Steady {
    fn now(&self) -> Millis {
        let (shown, latest) = (self.shown(), self.latest.load(Ordering::Relaxed));
        if shown > latest {
            self.tell(shown)
        } else if latest - shown > SLACK_MS {
            self.make_up()
        } else {
            Millis(latest)
        }
    }

    /// One that panics as it waits is waited for without it.
    async fn sleep(&self, delay: Duration) {
        let begun = Instant::now();
        // Asked for inside the guard: a clock may panic before it waits.
        let slept = AssertUnwindSafe(async { self.inner.sleep(delay).await }).catch_unwind().await;
        if let Err(panic) = slept {
            tracing::error!(panic = panic_text(panic.as_ref()), "the clock panicked");
            tokio::time::sleep(delay.saturating_sub(begun.elapsed())).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows what it was set to.
    struct Wall(AtomicU64);

    #[async_trait]
    impl Clock for Wall {
        fn now(&self) -> Millis {
            Millis(self.0.load(Ordering::Relaxed))
        }

        async fn sleep(&self, delay: Duration) {
            tokio::time::sleep(delay).await;
        }
    }

    fn clocks(at: u64) -> (Arc<Wall>, Steady) {
        let wall = Arc::new(Wall(AtomicU64::new(at)));
        (wall.clone(), Steady::new(wall))
    }

    fn set(wall: &Wall, at: u64) {
        wall.0.store(at, Ordering::Relaxed);
    }

    #[tokio::test(start_paused = true)]
    async fn it_follows_forward_and_never_goes_back() {
        let (wall, clock) = clocks(10_000_000);
        for (shown, told) in [
            (10_000_500, 10_000_500),
            // An hour forward, as after a suspend.
            (13_600_500, 13_600_500),
            // A little back: it stands.
            (13_600_000, 13_600_500),
            (13_600_600, 13_600_600),
            // An hour back: it goes on.
            (10_000_600, 13_600_600),
            (10_000_700, 13_600_700),
            (0, 13_600_700),
            (5, 13_600_705),
        ] {
            set(&wall, shown);
            assert_eq!(clock.now(), Millis(told), "{shown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_until_it_is_seen_to_be_set_back_has_passed() {
        let (wall, clock) = clocks(10_000_000);
        for told in [10_004_000, 10_008_000] {
            clock.sleep(Duration::from_secs(3)).await;
            wall.0.fetch_sub(3_600_000, Ordering::Relaxed);
            clock.sleep(Duration::from_secs(1)).await;
            assert_eq!(clock.now(), Millis(told));
        }
    }

    /// Is set back while it is read, and somebody else sees that first.
    struct Slow {
        wall: AtomicU64,
        other: Mutex<Option<Arc<Steady>>>,
    }

    #[async_trait]
    impl Clock for Slow {
        fn now(&self) -> Millis {
            let read = self.wall.load(Ordering::Relaxed);
            let other = self.other.lock().unwrap().take();
            if let Some(other) = other {
                self.wall.fetch_sub(3_600_000, Ordering::Relaxed);
                other.now();
            }
            Millis(read)
        }

        async fn sleep(&self, delay: Duration) {
            tokio::time::sleep(delay).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_from_before_it_was_set_back_is_not_made_up_for() {
        let wall = Arc::new(Slow { wall: AtomicU64::new(10_000_000), other: Mutex::default() });
        let clock = Arc::new(Steady::new(wall.clone()));
        *wall.other.lock().unwrap() = Some(clock.clone());
        assert_eq!(clock.now(), Millis(10_000_000));
        assert_eq!(clock.now(), Millis(10_000_000));
    }

    #[test]
    fn threads_that_read_it_at_once_do_not_make_it_run_ahead() {
        let (wall, clock) = clocks(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20_000).for_each(|_| assert!(clock.now().0 < 20_000)));
            }
            for at in 0..20_000 {
                set(&wall, at);
            }
        });
        assert_eq!((clock.now(), clock.ahead.load(Ordering::Relaxed)), (Millis(19_999), 0));
    }

    /// Shows the runtime's time, and breaks whenever it is asked.
    struct Broken(std::sync::atomic::AtomicBool, Wall);

    #[async_trait]
    impl Clock for Broken {
        fn now(&self) -> Millis {
            assert!(!self.0.load(Ordering::Relaxed), "no hands");
            self.1.now()
        }

        async fn sleep(&self, _: Duration) {
            panic!("no spring");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_panics_stands_still_and_is_waited_for_all_the_same() {
        let inner = Arc::new(Broken(false.into(), Wall(AtomicU64::new(10_000_000))));
        let clock = Steady::new(inner.clone());
        inner.0.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        clock.sleep(Duration::from_secs(5)).await;
        assert_eq!((begun.elapsed(), clock.now()), (Duration::from_secs(5), Millis(10_000_000)));
        inner.0.store(false, Ordering::Relaxed);
        set(&inner.1, 10_005_000);
        assert_eq!(clock.now(), Millis(10_005_000));
    }
}
