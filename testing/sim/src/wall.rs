//! A wall clock that can be set while others wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{Clock, kernel::Millis};
use tokio::time::Instant;

/// A wall clock based on the time of a tokio runtime, preferably a paused one. Clones share it.
///
/// Setting it changes the displayed time, but not the length of sleeps: as when an administrator sets the machine's
/// clock, when the machine resumes from a suspend (set forward), or when the clock was wrong.
#[derive(Clone, Debug)]
pub struct WallClock {
    began: Instant,
    /// The displayed time at `began`, in epoch milliseconds.
    shown: Arc<AtomicI64>,
}

impl WallClock {
    /// Creates a clock that shows this time now. Call it in the runtime.
    pub fn new(now: Millis) -> Self {
        Self { began: Instant::now(), shown: Arc::new(AtomicI64::new(signed(now.0))) }
    }

    /// Sets the clock forward by this many milliseconds, or back if negative.
    pub fn set(&self, by_ms: i64) {
        self.shown.fetch_add(by_ms, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for WallClock {
    fn now(&self) -> Millis {
        let passed = signed(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX));
        Millis(u64::try_from(self.shown.load(Ordering::Relaxed).saturating_add(passed)).unwrap_or(0))
    }

    async fn sleep(&self, delay: Duration) {
        tokio::time::sleep(delay).await;
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn setting_it_changes_what_it_shows_and_no_sleep() {
        let clock = WallClock::new(Millis(10_000));
        let began = Instant::now();
        let sleep = clock.sleep(Duration::from_secs(5));
        clock.set(-4_000);
        assert_eq!(clock.now(), Millis(6_000));
        sleep.await;
        assert_eq!((clock.now(), began.elapsed()), (Millis(11_000), Duration::from_secs(5)));
        clock.clone().set(60_000);
        assert_eq!(clock.now(), Millis(71_000));
    }
}
