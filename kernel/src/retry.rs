//! Retrying, split in two: deciding how long to wait, and waiting.

use alloc::{boxed::Box, sync::Arc};
use core::time::Duration;

use async_trait::async_trait;
use everturn_wire::{Failure, RetryOutcome, TurnId};

use crate::{Ask, Directive, NextCall, Question, health::passes, jitter::key_of};

/// The input of a [`Schedule`]: a retry and its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry<'a> {
    /// 0-based number of the retry within its step.
    pub attempt: u32,
    /// The failure that it follows.
    pub failure: &'a Failure,
    /// A hash of the turn's id: the same for all retries of a turn, different between turns. Derive jitter from it, so
    /// that turns which failed together do not retry together.
    pub key: u64,
}

impl<'a> Retry<'a> {
    /// Creates the input for a retry of an unnamed turn: its key is 0.
    pub fn new(attempt: u32, failure: &'a Failure) -> Self {
        Self { attempt, failure, key: 0 }
    }

    /// Creates the input for a retry of the turn with this key, as in [`Question::key`].
    pub fn with_key(attempt: u32, failure: &'a Failure, key: u64) -> Self {
        Self { attempt, failure, key }
    }

    /// Sets the turn that the jitter key is derived from.
    #[must_use]
    pub fn of_turn(self, id: &TurnId) -> Self {
        Self { key: key_of(&[id.as_str()]), ..self }
    }
}

/// Decides how long to wait before a retry. Pure: the same input always gives the same result.
///
/// After ten retries of a step, or as many as the turn has targets, the kernel waits at least 100 ms before each further one,
/// which the budget must allow. So a schedule that never waits and never gives up cannot ask in a tight loop, or for ever.
pub trait Schedule {
    /// Returns the wait before a retry; `None` = give up.
    ///
    /// Called only for failures that pass by themselves: retryable ones, and usage limits with a known end. The kernel extends the result to the provider's hint.
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration>;

    /// Returns what to do about a failure. Override it to choose between targets, or to say more than a wait.
    ///
    /// By default the same target is asked again after [`Self::delay_for`], and a failure that does not pass by itself
    /// ends the turn. Pure: what is known about the targets is part of the question.
    fn decide(&self, question: &Question<'_>) -> Directive {
        decide_alone(self, question)
    }

    /// Returns the target of a call, at the start of a step or after a wait, as an index. Default: the one that was
    /// asked or waited for last.
    fn next_target(&self, call: &NextCall<'_>) -> usize {
        call.current
    }

    /// Whether the schedule chooses between targets. If not, a turn with several needs somebody else who does.
    fn chooses_targets(&self) -> bool {
        false
    }

    /// Whether calls are made even if other turns found their target limited. For schedules that deliberately cut hints
    /// short.
    fn ignores_holds(&self) -> bool {
        false
    }

    /// Whether a failed reply of a turn that must report, e.g. one without a report, is a failure like others:
    /// [`Self::decide`] is asked about it, and it counts as a call. Otherwise the same target is asked again at once.
    fn counts_replies(&self) -> bool {
        false
    }

    /// Returns the maximum number of retries of a step, if known. Displayed; and if a turn must report, failed calls and
    /// failed replies of a step together are retried no more often than that.
    fn max_retries(&self) -> Option<u32> {
        None
    }
}

/// Decides by the waits of a schedule alone, as [`Schedule::decide`] does by default.
pub fn decide_alone<S: Schedule + ?Sized>(schedule: &S, question: &Question<'_>) -> Directive {
    let Question { failure, ledger, key, .. } = *question;
    if !passes(failure) {
        return RetryOutcome::NotRetryable.into();
    }
    match schedule.delay_for(&Retry { attempt: ledger.counted(), failure, key }) {
        Some(wait) => Ask::new(ledger.target, wait).into(),
        None => RetryOutcome::Exhausted.into(),
    }
}

/// Implements `Schedule` for a pointer to one, forwarding every method that can be overridden.
macro_rules! behind {
    ($pointer:ty) => {
        impl<S: Schedule + ?Sized> Schedule for $pointer {
            fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
                (**self).delay_for(retry)
            }

            fn decide(&self, question: &Question<'_>) -> Directive {
                (**self).decide(question)
            }

            fn next_target(&self, call: &NextCall<'_>) -> usize {
                (**self).next_target(call)
            }

            fn chooses_targets(&self) -> bool {
                (**self).chooses_targets()
            }

            fn ignores_holds(&self) -> bool {
                (**self).ignores_holds()
            }

            fn counts_replies(&self) -> bool {
                (**self).counts_replies()
            }

            fn max_retries(&self) -> Option<u32> {
                (**self).max_retries()
            }
        }
    };
}

behind!(&S);
behind!(Arc<S>);

/// What a turn needs in order to retry: a schedule, and the effect of waiting.
///
/// `sleep` may return early; the driver then sleeps again for the rest, by [`crate::Host::now`]. It may be dropped
/// midway, or never return: a stop or "retry now" still ends the wait.
#[async_trait]
pub trait RetryStrategy: Schedule + Send + Sync {
    /// Waits for `delay`. A fake clock advances by `delay` and returns.
    async fn sleep(&self, delay: Duration);
}

/// A strategy that never retries. A turn restored during a wait continues only on [`crate::Input::RetryNow`].
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
        // If this returned early, the driver would call it again in a loop until the wait is over.
        core::future::pending::<()>().await;
    }
}
