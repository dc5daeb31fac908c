//! A clock that is never set back.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::Millis;

use super::{Clock, whole_ms};

/// How far the inner clock may show less than before without being taken for set back, in milliseconds: threads that
/// look at it at the same time tell their readings in any order.
const SLACK_MS: u64 = 1_000;

/// The time that turns live by: the inner clock's, followed forward and never back. Where that one is set back, time
/// goes on from the latest moment that was seen, and whoever slept for a while finds that while passed: so no wait
/// grows.
pub(crate) struct Steady {
    inner: Arc<dyn Clock>,
    /// The latest moment that was told or slept to.
    latest: AtomicU64,
    /// By how much this clock is ahead of the inner one, which was set back by so much.
    ahead: AtomicU64,
    setting: Mutex<()>,
}

impl Steady {
    pub(crate) fn new(inner: Arc<dyn Clock>) -> Self {
        let latest = AtomicU64::new(inner.now().0);
        Self { inner, latest, ahead: AtomicU64::new(0), setting: Mutex::new(()) }
    }

    fn shown(&self) -> u64 {
        self.inner.now().plus(self.ahead.load(Ordering::Relaxed)).0
    }

    /// Goes on from `latest`, if the inner clock was really set back: seen by one thread at a time.
    fn make_up(&self, latest: u64) {
        let _alone = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = latest.saturating_sub(self.shown());
        if behind > SLACK_MS {
            self.ahead.fetch_add(behind, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl Clock for Steady {
    fn now(&self) -> Millis {
        let (shown, latest) = (self.shown(), self.latest.load(Ordering::Relaxed));
        if shown > latest {
            return Millis(self.latest.fetch_max(shown, Ordering::Relaxed).max(shown));
        }
        if latest - shown > SLACK_MS {
            self.make_up(latest);
        }
        Millis(latest)
    }

    async fn sleep(&self, delay: Duration) {
        let end = self.now().plus(whole_ms(delay));
        self.inner.sleep(delay).await;
        self.latest.fetch_max(end.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows what it was set to, and is set back by an hour while anyone sleeps.
    struct Wall(AtomicU64);

    #[async_trait]
    impl Clock for Wall {
        fn now(&self) -> Millis {
            Millis(self.0.load(Ordering::Relaxed))
        }

        async fn sleep(&self, _: Duration) {
            self.0.fetch_sub(3_600_000, Ordering::Relaxed);
        }
    }

    fn clocks(at: u64) -> (Arc<Wall>, Steady) {
        let wall = Arc::new(Wall(AtomicU64::new(at)));
        (wall.clone(), Steady::new(wall))
    }

    fn set(wall: &Wall, at: u64) {
        wall.0.store(at, Ordering::Relaxed);
    }

    #[test]
    fn it_follows_forward_and_never_goes_back() {
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

    #[tokio::test]
    async fn a_sleep_passes_though_the_clock_is_set_back() {
        let (wall, clock) = clocks(10_000_000);
        for told in [10_004_000, 10_008_000] {
            clock.sleep(Duration::from_secs(4)).await;
            assert_eq!(clock.now(), Millis(told));
        }
        assert_eq!(wall.now(), Millis(10_000_000 - 7_200_000));
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
}
