//! A provider call failed: wait and retry, or give up.

use alloc::{boxed::Box, format};

use everturn_wire::{Category, DoneReason, EventBody, Failure, RetryOutcome};

use super::{Turn, seal::GivenUp};
use crate::{
    Effects, Millis, Op, Retry, Schedule,
    millis::{LONGEST_WAIT_MS, wait_ms},
    phase::{Backoff, Phase, Scheduled, Tally},
};

impl Turn {
    pub(super) fn on_failed(
        &mut self,
        now: Millis,
        failure: Failure,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        if streaming.has_content() {
            return self.fail(now, failure, RetryOutcome::NotRetryable.into(), fx);
        }
        let (op, tally) = (streaming.op, streaming.tally.clone());
        match self.decide(now, &tally, &failure, schedule) {
            Ok(delay_ms) => {
                self.back_off(Backoff::after(now, op, tally, delay_ms), failure, schedule.max_retries(), fx);
            }
            Err(given_up) => self.fail(now, failure, given_up, fx),
        }
    }

    /// Handles a stream that ended well but empty. It is retried like a failure, even if it reported usage, unless it
    /// was cut for a reason that a retry does not change.
    pub(super) fn on_empty(
        &mut self,
        now: Millis,
        reason: &DoneReason,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        let (usage, step) = (streaming.usage.take(), streaming.op.step);
        self.settle_usage(usage, &self.step_id(step), fx);
        self.on_failed(now, emptiness(reason), schedule, fx);
    }

    /// Returns the wait before the next retry in milliseconds, or why there is none.
    fn decide(
        &self,
        now: Millis,
        tally: &Tally,
        failure: &Failure,
        schedule: &dyn Schedule,
    ) -> Result<u64, GivenUp> {
        if !failure.retryable {
            return Err(RetryOutcome::NotRetryable.into());
        }
        let question = Retry::new(tally.retries.saturating_sub(tally.asked), failure).of_turn(&self.id);
        let delay = schedule.delay_for(&question).ok_or(RetryOutcome::Exhausted)?;
        // A hint only extends a wait: asking earlier produces another refusal.
        let delay_ms = wait_ms(delay).max(failure.hint_ms.unwrap_or(0)).min(LONGEST_WAIT_MS);
        match self.settings.budget.left(now, tally.waited_ms) {
            Some(left_ms) if delay_ms > left_ms => {
                let (needed, left) = (delay_ms.div_ceil(1000), left_ms / 1000);
                let detail = format!("the next attempt would be in {needed} s, the budget leaves {left} s");
                Err(GivenUp { outcome: RetryOutcome::TooLong, detail: Some(detail) })
            }
            _ => Ok(delay_ms),
        }
    }

    /// Schedules a retry and announces it.
    pub(super) fn back_off(
        &mut self,
        mut backoff: Backoff,
        failure: Failure,
        max_attempts: Option<u32>,
        fx: &mut Effects,
    ) {
        let delay_ms = backoff.decided_ms;
        let waited_ms = backoff.tally.waited_ms;
        self.retries = self.retries.saturating_add(1);
        self.waited_ms = self.waited_ms.saturating_add(delay_ms);
        let max_attempts = max_attempts.map(|max| max.saturating_add(backoff.tally.asked));
        backoff.tally.last = Some(Box::new(Scheduled {
            delay_ms,
            max_attempts,
            category: failure.category,
            message: failure.message.clone(),
            code: failure.code.clone(),
        }));
        fx.tell(EventBody::ProviderRetry {
            attempt: backoff.tally.retries.saturating_sub(1),
            delay_ms,
            message: failure.message,
            code: failure.code,
            next_at: Some(backoff.resume_at.0),
            category: Some(failure.category),
            max_attempts,
            budget_left_ms: self.settings.budget.max_wait_ms.map(|max| max.saturating_sub(waited_ms)),
            target: None,
            hinted: failure.hint_ms.is_some_and(|hint_ms| is_hint(hint_ms, delay_ms)).then_some(true),
        });
        self.enter(Phase::Backoff(backoff));
    }
}

impl Backoff {
    pub(super) fn after(now: Millis, failed: Op, tally: Tally, delay_ms: u64) -> Self {
        Self {
            op: Op { step: failed.step, attempt: failed.attempt.saturating_add(1) },
            tally: Tally {
                retries: tally.retries.saturating_add(1),
                waited_ms: tally.waited_ms.saturating_add(delay_ms),
                ..tally
            },
            resume_at: now.plus(delay_ms),
            decided_ms: delay_ms,
        }
    }
}

/// Whether a wait is the one that the provider asked for: as long, or longer by no more than a schedule spreads it (2 %
/// and 1 s).
fn is_hint(hint_ms: u64, delay_ms: u64) -> bool {
    let spread_ms = hint_ms / 50 + hint_ms.min(1_000);
    hint_ms > 0 && (hint_ms..=hint_ms.saturating_add(spread_ms)).contains(&delay_ms)
}

/// Returns the failure for an empty answer.
fn emptiness(reason: &DoneReason) -> Failure {
    match reason {
        DoneReason::Length => Failure::new(
            Category::InvalidResponse,
            false,
            "the model reached its limit of tokens before it said anything: allow longer answers, or less reasoning",
        ),
        DoneReason::ContentFilter => {
            Failure::new(Category::ContentPolicy, false, "the provider withheld the whole answer")
        }
        _ => {
            Failure::new(Category::InvalidResponse, true, "the provider ended its answer without any content")
        }
    }
}
