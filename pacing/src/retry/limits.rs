//! What a turn does about limits that last longer than its waits: minutes, hours or days.

use alloc::format;
use core::time::Duration;

use everturn_kernel::{
    Ask, Directive, GiveUp, Question, SHORTEST_MARK_MS, USUAL_MARK_MS, passes,
    span::{at_least, at_most},
    wait_ms,
};
use everturn_wire::{Category, RetryOutcome};

use super::others::{hinted_ms, reason};

/// First wait if the provider named no end, in milliseconds. Each further wait doubles.
const FIRST_MS: u64 = 15 * 60 * 1_000;
/// Longest wait if the provider named no end, in milliseconds.
const LONGEST_MS: u64 = 6 * 60 * 60 * 1_000;
/// Maximum sum of such waits of a step, in milliseconds: 7 days, because the longest limits of providers are weekly.
const MOST_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// What a turn does about a limit that lasts long, if its schedule cannot ask another target at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongLimits {
    /// Follows the schedule, within the budget.
    #[default]
    WithinBudget,
    /// Waits out an exhausted account until its limit resets, and any other failure whose hint exceeds the budget, or the
    /// schedule's longest wait, until the hint expires. The wait is as long as the provider said. Without a hint, an
    /// exhausted account is asked again after 15 min, doubling up to 6 h. All such waits of a step add up to at most 7 days.
    /// They use up no retry, and neither the budget nor the schedule's maximum bounds them.
    SitOut,
    /// Gives up at an exhausted account, and at a hint of at least [`Self::LONG_MS`].
    GiveUp,
}

impl LongLimits {
    /// Shortest hint that counts as long, in milliseconds, if the provider does not say that a quota is used up: 10 min.
    pub const LONG_MS: u64 = 10 * 60 * 1_000;

    /// Applies this to what the schedule decided.
    pub(super) fn apply(self, question: &Question<'_>, decided: Directive) -> Directive {
        match (self, decided) {
            (Self::SitOut, Directive::Ask(ask)) => sit_out_wait(question, ask),
            (Self::SitOut, Directive::GiveUp(given_up)) => sit_out_end(question, given_up),
            (Self::GiveUp, Directive::Ask(ask)) => refuse(question, ask),
            (Self::WithinBudget, decided) | (Self::GiveUp, decided) => decided,
        }
    }
}

fn refuse(question: &Question<'_>, ask: Ask) -> Directive {
    let Question { failure, ledger, .. } = *question;
    let hint_ms = failure.hint_ms.unwrap_or(0);
    let is_long = failure.category == Category::QuotaExhausted || hint_ms >= LongLimits::LONG_MS;
    let waits = ask.target == ledger.target || !ask.wait.is_zero();
    if is_long && waits { GiveUp::too_long(hint_ms, 0, failure).into() } else { ask.into() }
}

fn sit_out_wait(question: &Question<'_>, mut ask: Ask) -> Directive {
    let Question { failure, ledger, .. } = *question;
    let own_ms = if ask.target == ledger.target { hinted_ms(question, ask.target) } else { 0 };
    let asked_ms = wait_ms(ask.wait);
    let wait_ms = asked_ms.max(if ask.clamped { 0 } else { own_ms });
    let is_beyond = failure.hint_ms.is_some() && question.left_ms.is_some_and(|left_ms| wait_ms > left_ms);
    // Without a wait, another target can be asked at once.
    if wait_ms == 0 || !(failure.category == Category::QuotaExhausted || is_beyond) {
        return ask.into();
    }
    // A wait that is not charged need not cut a hint of the failed target short.
    ask.clamped &= ask.target != ledger.target;
    sit_out(question, ask, asked_ms.max(own_ms))
}

fn sit_out_end(question: &Question<'_>, given_up: GiveUp) -> Directive {
    let Question { failure, ledger, .. } = *question;
    let is_too_long = given_up.outcome == RetryOutcome::TooLong;
    let is_beyond = is_too_long && failure.hint_ms.is_some() && passes(failure);
    if failure.category != Category::QuotaExhausted && !is_beyond {
        return given_up.into();
    }
    let ask = Ask::new(ledger.target, Duration::ZERO).because(reason(question));
    sit_out(question, ask, hinted_ms(question, ledger.target))
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

fn sit_out(question: &Question<'_>, mut ask: Ask, wait_ms: u64) -> Directive {
    let wait_ms = wait_ms.max(least_ms(question));
    let left_ms = MOST_MS.saturating_sub(question.ledger.walled_ms);
    if wait_ms > left_ms {
        let (wait, left) = (at_least(wait_ms), at_most(left_ms));
        let detail = format!(
            "the next attempt would be in {wait}, but only {left} are left of the 7 days that a step may wait"
        );
        return GiveUp::new(RetryOutcome::TooLong, detail).into();
    }
    ask.wait = Duration::from_millis(wait_ms);
    (ask.uncounted, ask.is_wall) = (true, true);
    ask.into()
}

#[cfg(test)]
mod tests {
    use everturn_kernel::{Ledger, Millis, Schedule as _, Target};
    use everturn_wire::Failure;

    use super::*;
    use crate::RetryPolicy;

    #[test]
    fn only_what_lasts_is_given_up() {
        let policy = RetryPolicy::default().with(LongLimits::GiveUp);
        let waits = |category, hint_ms| {
            let failure = Failure { hint_ms, ..Failure::new(category, true, "no") };
            let (ledger, targets) = (Ledger::default(), [Target::default()]);
            let question = Question::new(Millis(0), &failure, &ledger, &targets);
            matches!(policy.decide(&question), Directive::Ask(_))
        };
        assert!(waits(Category::RateLimited, Some(59_000)));
        assert!(waits(Category::Overloaded, None));
        assert!(!waits(Category::RateLimited, Some(LongLimits::LONG_MS)));
        assert!(!waits(Category::QuotaExhausted, Some(1_000)));
    }
}
