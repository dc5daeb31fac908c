//! Waits out limits that last longer than the budget: for hours or days.

use alloc::format;
use core::time::Duration;

use everturn_wire::{Category, RetryOutcome, Value};

use super::reason;
use crate::{
    Ask, Directive, GiveUp, NextCall, Question, Retry, Schedule,
    health::{SHORTEST_MARK_MS, USUAL_MARK_MS, passes},
    millis::wait_ms,
    span::{at_least, at_most},
};

/// First wait if the provider named no end, in milliseconds. Each further wait doubles.
const FIRST_MS: u64 = 15 * 60 * 1_000;
/// Longest wait if the provider named no end, in milliseconds.
const LONGEST_MS: u64 = 6 * 60 * 60 * 1_000;
/// Maximum sum of such waits of a step, in milliseconds: 7 days, because the longest limits of providers are weekly.
const MOST_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A schedule that also waits out limits, unless the inner schedule can ask another target at once: an exhausted
/// account until its limit resets, and any other failure whose hint exceeds the budget, or the inner schedule's longest
/// wait, until the hint expires. The wait is as long as the provider said. Without a hint, an exhausted account is
/// asked again after 15 min, doubling up to 6 h. All such waits of a step add up to at most 7 days. They use up no
/// retry, and neither the budget nor the inner schedule's maximum bounds them.
///
/// Put it around a [`crate::Handover`]. Inside one it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walls<S>(
    /// The inner schedule. It answers all other failures.
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
        let Question { failure, ledger, .. } = *question;
        let hint_ms = failure.hint_ms;
        let is_used_up = failure.category == Category::QuotaExhausted;
        match self.0.decide(question) {
            Directive::Ask(ask) => {
                let own_ms = hint_ms.filter(|_| ask.target == ledger.target).unwrap_or(0);
                let asked_ms = wait_ms(ask.wait);
                let wait_ms = asked_ms.max(if ask.clamped { 0 } else { own_ms });
                let is_beyond =
                    hint_ms.is_some() && question.left_ms.is_some_and(|left_ms| wait_ms > left_ms);
                // Without a wait, another target can be asked at once.
                if wait_ms == 0 || !(is_used_up || is_beyond) {
                    return ask.into();
                }
                // A wait that is not charged need not cut the failure's own hint short.
                let clamped = ask.clamped && ask.target != ledger.target;
                sit_out(question, Ask { clamped, ..ask }, asked_ms.max(own_ms))
            }
            Directive::GiveUp(given_up) => {
                let is_too_long = given_up.outcome == RetryOutcome::TooLong;
                let is_beyond = is_too_long && hint_ms.is_some() && passes(failure);
                if !is_used_up && !is_beyond {
                    return given_up.into();
                }
                let ask = Ask::new(ledger.target, Duration::ZERO).because(reason(question));
                sit_out(question, ask, hint_ms.unwrap_or(0))
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

    fn counts_replies(&self) -> bool {
        self.0.counts_replies()
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

fn sit_out(question: &Question<'_>, ask: Ask, wait_ms: u64) -> Directive {
    let wait_ms = wait_ms.max(least_ms(question));
    let left_ms = MOST_MS.saturating_sub(question.ledger.walled_ms);
    if wait_ms > left_ms {
        let (wait, left) = (at_least(wait_ms), at_most(left_ms));
        let detail = format!(
            "the next attempt would be in {wait}, but only {left} are left of the 7 days that a step may wait"
        );
        return GiveUp { outcome: RetryOutcome::TooLong, detail: Some(detail) }.into();
    }
    Ask { wait: Duration::from_millis(wait_ms), uncounted: true, is_wall: true, ..ask }.into()
}
