//! A wall clock that can be set while others wait by it.

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

/// A wall clock over the time of a tokio runtime, best of one whose time is paused. Clones are the same clock.
///
/// Setting it changes what it shows, not how long a sleep takes: as when an administrator sets the machine's clock,
/// when the machine wakes up from a suspend (set forward), or when it is found to have been wrong.
#[derive(Clone, Debug)]
pub struct WallClock {
    began: Instant,
    /// What it shows at `began`, in epoch milliseconds.
    shown: Arc<AtomicI64>,
}

impl WallClock {
    /// A clock that shows this time now. Call it in the runtime.
    pub fn new(now: Millis) -> Self {
        Self { began: Instant::now(), shown: Arc::new(AtomicI64::new(signed(now.0))) }
    }

    /// Sets it forward by so many milliseconds, or back where they are negative.
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
