//! Retrying as two separate things: deciding how long to wait, and waiting.

use alloc::boxed::Box;
use core::time::Duration;

use async_trait::async_trait;
use everturn_wire::{Failure, TurnId, Value};

/// The question that a [`Schedule`] answers: a retry, and which turn asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry<'a> {
    /// 0-based number of the retry in its step.
    pub attempt: u32,
    /// The failure that it follows. Retryable.
    pub failure: &'a Failure,
    /// A hash of the turn's id: the same for all retries of a turn, different between turns. Draw jitter from it, so that
    /// turns which failed together do not come back together.
    pub key: u64,
}

impl<'a> Retry<'a> {
    /// The question of a turn without a name: its key is 0.
    pub fn new(attempt: u32, failure: &'a Failure) -> Self {
        Self { attempt, failure, key: 0 }
    }

    /// The question of that turn.
    #[must_use]
    pub fn of_turn(self, id: &TurnId) -> Self {
        // FNV-1a: the same on every machine and in every version, which std's hashes do not promise.
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        Self { key: id.as_str().bytes().fold(0xCBF2_9CE4_8422_2325, fold), ..self }
    }
}

/// How long to wait before a retry. Pure: the same question always has the same answer.
pub trait Schedule {
    /// The wait before a retry; `None` = give up.
    ///
    /// Only asked about retryable failures. The kernel lengthens the answer to the provider's hint.
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration>;

    /// Its name and figures, from which another process makes the same schedule; `None` where it has no such form.
    fn saved(&self) -> Option<Value> {
        None
    }

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
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
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
