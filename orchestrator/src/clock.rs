//! Time and timers, behind a trait so that tests have their own.

mod steady;
mod suspend;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use everturn_kernel::Millis;
use tokio::time::Instant;

pub(crate) use steady::Steady;
use suspend::Suspend;

/// The orchestrator's source of time.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time. It may go backwards, like a wall clock that is set; turns then continue from the latest time
    /// they saw.
    fn now(&self) -> Millis;

    /// Waits at least this long, whatever [`now`](Self::now) returns meanwhile. Cancel-safe.
    async fn sleep(&self, delay: Duration);
}

/// The system clock, read once. Afterwards time advances with the monotonic clock, so setting the wall clock neither extends
/// nor shortens a wait. Time spent suspended counts where the system reports it.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    wall: Millis,
    at: Instant,
    suspend: Suspend,
}

impl SystemClock {
    /// Reads the machine's clock.
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall: Millis(whole_ms(since_epoch)), at: Instant::now(), suspend: Suspend::new() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Millis {
        self.wall.plus(whole_ms(self.at.elapsed())).plus(whole_ms(self.suspend.total()))
    }

    async fn sleep(&self, delay: Duration) {
        tokio::time::sleep(delay).await;
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
