//! Time and timers, behind a trait so that tests have their own.

mod steady;
mod suspend;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use everturn_kernel::Millis;
use tokio::time::Instant;

pub(crate) use steady::Steady;
use suspend::Suspend;

/// Where the orchestrator has its time from.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The time. May go back, as a wall clock does that is set: then turns go on by the latest moment they saw.
    fn now(&self) -> Millis;

    /// Waits for no less than that, whatever [`now`](Self::now) shows meanwhile. May be dropped.
    async fn sleep(&self, delay: Duration);
}

/// The machine's clock, read once: from then on time moves with the monotonic clock, so that a wall clock which is set
/// back or forward neither stretches a wait nor ends it early. Time that the machine is suspended passes as well, where
/// the system tells it.
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
