//! Waits out usage limits, which last for hours or days.

use alloc::format;
use core::time::Duration;

use everturn_wire::{Category, RetryOutcome, Value};

use super::reason;
use crate::{
    Ask, Directive, GiveUp, NextCall, Question, Retry, Schedule,
    health::{SHORTEST_MARK_MS, USUAL_MARK_MS},
    millis::wait_ms,
};

/// First wait if the provider named no end, in milliseconds. Each further wait doubles.
const FIRST_MS: u64 = 15 * 60 * 1_000;
/// Longest wait if the provider named no end, in milliseconds.
const LONGEST_MS: u64 = 6 * 60 * 60 * 1_000;
/// Maximum sum of the waits of a step for usage limits, in milliseconds: 7 days, because the longest limits of
/// providers are weekly.
const MOST_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A schedule that also waits out usage limits. It waits for an exhausted account until the limit resets, unless the
/// inner schedule can ask another target at once. The wait is as long as the provider said, else 15 min, doubling up to
/// 6 h, for at most 7 days in a step. Such a wait uses up no retry, and neither the budget nor the inner schedule's
/// maximum bounds it.
///
/// Put it around a [`crate::Handover`]. Inside one it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walls<S>(
    /// The inner schedule. It answers all other failures, and usage limits that another target or a short wait avoids.
    pub S,
);

impl Walls<()> {
    /// The name under which it is saved.
    pub const NAME: &str = "walls";
}

impl<S: Schedule> Schedule for Walls<S> {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.0.delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        let decided = self.0.decide(question);
        if question.failure.category != Category::QuotaExhausted {
            return decided;
        }
        match decided {
            // Another target can be asked at once.
            Directive::Ask(ask) if ask.wait.is_zero() => ask.into(),
            Directive::Ask(ask) => sit_out(question, ask),
            Directive::GiveUp(_) => {
                let hint = Duration::from_millis(question.failure.hint_ms.unwrap_or(0));
                sit_out(question, Ask::new(question.ledger.target, hint).because(reason(question)))
            }
        }
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        self.0.next_target(call)
    }

    fn chooses_targets(&self) -> bool {
        self.0.chooses_targets()
    }

    fn ignores_holds(&self) -> bool {
        self.0.ignores_holds()
    }

    fn saved(&self) -> Option<Value> {
        let schedule = self.0.saved()?;
        Some(Value::from_iter([("name", Value::from(Walls::NAME)), ("schedule", schedule)]))
    }

    fn max_retries(&self) -> Option<u32> {
        self.0.max_retries()
    }
}

/// Returns the minimum wait, in milliseconds: an estimate if the provider named no end, else little. A provider that
/// repeatedly names too short a wait must not be asked in a tight loop.
fn least_ms(question: &Question<'_>) -> u64 {
    let walls = question.ledger.walls;
    match (question.failure.hint_ms, walls) {
        (None, _) => FIRST_MS.saturating_mul(1 << walls.min(16)).min(LONGEST_MS),
        (Some(_), 0) => SHORTEST_MARK_MS,
        (Some(_), _) => USUAL_MARK_MS,
    }
}

fn sit_out(question: &Question<'_>, ask: Ask) -> Directive {
    let wait_ms = wait_ms(ask.wait).max(least_ms(question));
    let left_ms = MOST_MS.saturating_sub(question.ledger.walled_ms);
    if wait_ms > left_ms {
        let [wait, left] = [wait_ms, left_ms].map(|ms| ms.div_ceil(60_000));
        let detail = format!(
            "the usage limit resets in {wait} min, but only {left} min are left of the 7 days that a step may wait"
        );
        return GiveUp { outcome: RetryOutcome::TooLong, detail: Some(detail) }.into();
    }
    Ask { wait: Duration::from_millis(wait_ms), uncounted: true, is_wall: true, ..ask }.into()
}
