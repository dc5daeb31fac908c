//! Retrying as two separate things: deciding how long to wait, and waiting.

use alloc::boxed::Box;
use core::time::Duration;

use async_trait::async_trait;
use everturn_wire::Failure;

/// How long to wait before a retry. Pure: the same question always has the same answer.
pub trait Schedule {
    /// The wait before retry number `attempt` of a step (0-based); `None` = give up.
    ///
    /// Only asked for failures that can pass by themselves. The kernel lengthens the answer to the provider's hint.
    fn delay_for(&self, attempt: u32, failure: &Failure) -> Option<Duration>;

    /// How many retries a step has in all, where that is known; for showing only.
    fn max_retries(&self) -> Option<u32> {
        None
    }
}

/// What a turn is given in order to retry: a schedule, and the only effect it needs.
///
/// `sleep` may return early (the driver sleeps again for what is left, by [`crate::Host::now`]), be dropped half-way,
/// or never return: a stop or "retry now" ends the wait all the same.
#[async_trait]
pub trait RetryStrategy: Schedule + Send + Sync {
    /// Waits. With a fake clock: move it forward by `delay` and return.
    async fn sleep(&self, delay: Duration);
}

/// Never retries: what a turn without a strategy has. One that was restored in a wait goes on only by
/// [`crate::Input::RetryNow`].
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRetry;

impl Schedule for NoRetry {
    fn delay_for(&self, _: u32, _: &Failure) -> Option<Duration> {
        None
    }
}

#[async_trait]
impl RetryStrategy for NoRetry {
    async fn sleep(&self, _: Duration) {
        // To return early is to be asked again, at once, until the wait is over.
        core::future::pending::<()>().await;
    }
}
