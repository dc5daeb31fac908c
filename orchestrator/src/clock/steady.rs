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

/// How far the inner clock may fall back without counting as set back, in milliseconds: threads that read it at the
/// same time report their readings in any order.
const SLACK_MS: u64 = 1_000;

/// The clock that turns use: follows the inner clock forward, but never back. If the inner clock is set back, time
/// continues with the monotonic clock, so that no wait becomes longer or shorter.
pub(crate) struct Steady {
    inner: Arc<dyn Clock>,
    began: Instant,
    /// The latest time that was returned, and when it was returned, in milliseconds after `began`.
    latest: AtomicU64,
    told_at: AtomicU64,
    /// How far this clock is ahead of the inner one, because that one was set back, in milliseconds.
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

    /// Returns the time of the inner clock, corrected for being set back. If the inner clock panics, time stands still,
    /// so that no turn fails because of it.
    fn shown(&self) -> u64 {
        // Loaded before reading the clock: otherwise a reading from before it was set back would be corrected, too.
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

    /// Corrects for the inner clock being set back, if it really was. Only one thread at a time checks.
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

    /// If the inner clock panics, tokio's timer waits for the rest.
    async fn sleep(&self, delay: Duration) {
        let begun = Instant::now();
        // Called inside the guard: a clock may panic before it waits.
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

    /// A clock that shows the time to which it was set.
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
            // A little back: time stands still.
            (13_600_000, 13_600_500),
            (13_600_600, 13_600_600),
            // An hour back: time continues.
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

    /// A clock that is set back while it is read; another reader notices first.
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

    /// A clock whose `now` panics on demand, and whose `sleep` always panics.
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
