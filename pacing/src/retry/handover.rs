//! Adapts a schedule to several targets: leaves a target that fails for good, or needs a long wait, for a free one at
//! once. If none is free, waits for the first to become free while the schedule has waits left. A handover uses up no
//! retry.

use core::time::Duration;

use everturn_kernel::{
    Ask, Directive, Question, Retry, Schedule, is_of_request, is_of_target, passes, wait_ms,
};
use everturn_wire::RetryOutcome;

use super::others::{earliest, others, reason};

/// Maximum wait for a target while another one is free, in milliseconds. A person who watches will still sit through
/// it.
const SHORT_MS: u64 = 10_000;

pub(super) fn decide(waits: &dyn Schedule, question: &Question<'_>) -> Directive {
    let Question { now, failure, ledger, key, .. } = *question;
    let is_final = !passes(failure);
    if is_final && is_of_request(failure.category) {
        return RetryOutcome::NotRetryable.into();
    }
    let retry = Retry::with_key(ledger.counted(), failure, key);
    let scheduled_ms = waits.delay_for(&retry).map(wait_ms);
    let known = question.known();
    let walled_ms = known.walled_until(now, question.failed()).since(now).max(failure.hint_ms.unwrap_or(0));
    let own_ms = scheduled_ms.filter(|_| !is_final).map(|scheduled_ms| scheduled_ms.max(walled_ms));
    let is_free = |index: &usize| known.free_at(now, &question.targets[*index]) <= now;
    // If the account is the problem, leave it whatever the wait.
    let stays = own_ms.is_some_and(|own_ms| own_ms <= SHORT_MS) && !is_of_target(failure.category);
    if !stays && let Some(next) = others(question).find(is_free) {
        let mut ask = Ask::new(next, Duration::ZERO).because(reason(question));
        // Only waits count against the schedule.
        (ask.drops_failed, ask.uncounted) = (is_final, true);
        return ask.into();
    }
    let Some(scheduled_ms) = scheduled_ms else { return RetryOutcome::Exhausted.into() };
    let short = own_ms.filter(|_| stays).map(|own_ms| (own_ms, ledger.target));
    let next = short.or_else(|| earliest(question, &known, own_ms, scheduled_ms));
    let Some((wait_ms, target)) = next else { return RetryOutcome::NotRetryable.into() };
    let mut ask = Ask::new(target, Duration::from_millis(wait_ms)).because(reason(question));
    ask.drops_failed = is_final;
    ask.into()
}
