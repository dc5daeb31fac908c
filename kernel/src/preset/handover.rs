//! Adapts a schedule to several targets: leaves a target that fails for good, or needs a long wait, for a free one at
//! once.

use core::time::Duration;

use everturn_wire::{RetryOutcome, Value};

use super::{earliest, known, others, reason};
use crate::{
    Ask, Directive, NextCall, Question, Retry, Schedule,
    health::{is_of_request, is_of_target, passes},
    millis::wait_ms,
};

/// Maximum wait for a target while another one is free, in milliseconds. A person who watches will still sit through
/// it.
const SHORT_MS: u64 = 10_000;

/// Applies a schedule for one target to several. A target that fails for good, or would need a wait of more than 10 s,
/// hands over to the next free target at once. If none is free, waits for the first to become free while the schedule
/// has waits left. A handover uses up no retry. A step begins with a free target if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover<S>(
    /// The schedule that decides the waits.
    pub S,
);

impl Handover<()> {
    /// The name under which it is saved.
    pub const NAME: &str = "handover";
}

impl<S: Schedule> Schedule for Handover<S> {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.0.delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        let Question { now, failure, ledger, key, .. } = *question;
        let is_final = !passes(failure);
        if is_final && is_of_request(failure.category) {
            return RetryOutcome::NotRetryable.into();
        }
        let attempt = ledger.counted();
        let scheduled_ms = self.0.delay_for(&Retry { attempt, failure, key }).map(wait_ms);
        let known = known(question);
        let walled_ms =
            known.walled_until(now, question.failed()).since(now).max(failure.hint_ms.unwrap_or(0));
        let own_ms = scheduled_ms.filter(|_| !is_final).map(|scheduled_ms| scheduled_ms.max(walled_ms));
        let is_free = |index: &usize| known.free_at(now, &question.targets[*index]) <= now;
        // If the account is the problem, leave it whatever the wait.
        let stays = own_ms.is_some_and(|own_ms| own_ms <= SHORT_MS) && !is_of_target(failure.category);
        if !stays && let Some(next) = others(question).find(is_free) {
            let ask = Ask::new(next, Duration::ZERO).because(reason(question));
            // Only waits count against the schedule.
            return Ask { drops_failed: is_final, uncounted: true, ..ask }.into();
        }
        let Some(scheduled_ms) = scheduled_ms else { return RetryOutcome::Exhausted.into() };
        let short = own_ms.filter(|_| stays).map(|own_ms| (own_ms, ledger.target));
        let next = short.or_else(|| earliest(question, &known, own_ms, scheduled_ms));
        let Some((wait_ms, target)) = next else { return RetryOutcome::NotRetryable.into() };
        let ask = Ask::new(target, Duration::from_millis(wait_ms)).because(reason(question));
        Ask { drops_failed: is_final, ..ask }.into()
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        call.after_wait().unwrap_or_else(|| call.current_or_free())
    }

    fn chooses_targets(&self) -> bool {
        true
    }

    fn ignores_holds(&self) -> bool {
        self.0.ignores_holds()
    }

    fn saved(&self) -> Option<Value> {
        let schedule = self.0.saved()?;
        Some(Value::from_iter([("name", Value::from(Handover::NAME)), ("schedule", schedule)]))
    }

    fn counts_replies(&self) -> bool {
        self.0.counts_replies()
    }

    fn max_retries(&self) -> Option<u32> {
        self.0.max_retries()
    }
}
