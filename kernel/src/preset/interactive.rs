//! For interactive use: few, short retries, and a switch to another credential or model before any wait.

use core::time::Duration;

use everturn_wire::{Category, RetryOutcome, Value};

use super::{earliest, known, others, reason};
use crate::{
    Ask, Directive, GiveUp, Health, Jitter, NextCall, Question, Retry, Schedule, health::is_of_request,
    millis::wait_ms,
};

/// Waits `base`, 2 x `base`, 4 x `base`, exact unless `jitter` is set. If another target may succeed, tries in this
/// order: a free credential of the same model (at a usage limit), the next free target of the route, a wait. A wait
/// longer than `max_delay` fails at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interactive {
    /// The first wait.
    pub base: Duration,
    /// The longest wait; `None` = no limit.
    pub max_delay: Option<Duration>,
    /// Maximum number of retries of a step, including switches.
    pub max_retries: u32,
    /// Whether a step goes back to the first target once that target is free again.
    pub reverts: bool,
    /// Maximum deviation as a fraction of the wait, 0 to 1; 0 = exact. A wait from a hint is only lengthened, by at
    /// most 2 % and 1 s. Jitter never makes a wait exceed `max_delay`.
    pub jitter: f64,
}

impl Default for Interactive {
    /// Waits of exactly 2 s, 4 s, 8 s, at most 300 s; goes back when a cooldown expires.
    fn default() -> Self {
        Self {
            base: Duration::from_secs(2),
            max_delay: Some(Duration::from_secs(300)),
            max_retries: 3,
            reverts: true,
            jitter: 0.0,
        }
    }
}

impl Interactive {
    /// The name under which it is saved.
    pub const NAME: &str = "interactive";

    /// Restores the schedule from its saved form.
    pub fn restore(saved: &Value) -> Option<Self> {
        let max_delay = match &saved["maxDelayMs"] {
            Value::Null => None,
            ms => Some(Duration::from_millis(ms.as_u64()?)),
        };
        Some(Self {
            base: Duration::from_millis(saved["baseMs"].as_u64()?),
            max_delay,
            max_retries: saved["maxRetries"].as_u64()?.try_into().ok()?,
            reverts: saved["reverts"].as_bool()?,
            jitter: saved["jitter"].as_f64().unwrap_or(0.0),
        })
    }

    /// Returns the target to switch to at once. At a usage limit, another credential of the same model comes before the
    /// route's order.
    fn candidate(question: &Question<'_>, known: &Health) -> Option<usize> {
        let now = question.now;
        let is_free = |index: &usize| known.free_at(now, &question.targets[*index]) <= now;
        let is_wall = question.failure.category == Category::QuotaExhausted;
        let is_sibling = |index: &usize| is_wall && question.targets[*index].model == question.failed().model;
        let sibling = others(question).filter(is_free).find(is_sibling);
        sibling.or_else(|| others(question).find(is_free))
    }

    /// Returns the wait before the failed target is asked again, in milliseconds; `None` if it failed for good. A usage
    /// limit is always waited for, until its hint or its mark expires, because it passes whatever the failure says.
    fn own_ms(&self, question: &Question<'_>, known: &Health, scheduled_ms: u64) -> Option<u64> {
        let (now, failed) = (question.now, question.failed());
        let free_at = match question.failure.category {
            Category::QuotaExhausted => known.free_at(now, failed),
            _ if question.failure.retryable => known.walled_until(now, failed),
            _ => return None,
        };
        let asked_ms = free_at.since(now).max(question.failure.hint_ms.unwrap_or(0));
        let jitter = self.jitter(question.key, question.ledger.counted());
        let later = self.within(asked_ms, wait_ms(jitter.lengthen(Duration::from_millis(asked_ms))));
        Some(scheduled_ms.max(later))
    }

    fn jitter(&self, key: u64, attempt: u32) -> Jitter {
        Jitter::new(self.jitter, key, attempt)
    }

    /// Returns the wait with its jitter, without letting jitter push it beyond `max_delay`. A wait that is too long
    /// stays so.
    fn within(&self, exact_ms: u64, spread_ms: u64) -> u64 {
        match self.max_delay.map(wait_ms) {
            Some(cap_ms) if exact_ms > cap_ms => exact_ms,
            Some(cap_ms) => spread_ms.min(cap_ms),
            None => spread_ms,
        }
    }
}

impl Schedule for Interactive {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        if retry.attempt >= self.max_retries {
            return None;
        }
        let doubled = self.base.saturating_mul(2u32.saturating_pow(retry.attempt));
        let spread = self.jitter(retry.key, retry.attempt).spread(doubled);
        if spread == doubled {
            return Some(doubled);
        }
        Some(Duration::from_millis(self.within(wait_ms(doubled), wait_ms(spread))))
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        let Question { failure, ledger, key, .. } = *question;
        let is_final = !failure.retryable && failure.category != Category::QuotaExhausted;
        let final_outcome = if is_final { RetryOutcome::NotRetryable } else { RetryOutcome::Exhausted };
        if is_final && is_of_request(failure.category) {
            return final_outcome.into();
        }
        let Some(scheduled) = self.delay_for(&Retry { attempt: ledger.counted(), failure, key }) else {
            return final_outcome.into();
        };
        let known = known(question);
        let drops_failed = is_final;
        if let Some(target) = Self::candidate(question, &known) {
            let ask = Ask::new(target, Duration::ZERO).because(reason(question));
            return Ask { drops_failed, ..ask }.into();
        }
        let scheduled_ms = wait_ms(scheduled);
        let own_ms = self.own_ms(question, &known, scheduled_ms);
        let Some((delay_ms, target)) = earliest(question, &known, own_ms, scheduled_ms) else {
            return final_outcome.into();
        };
        match self.max_delay.map(wait_ms) {
            Some(cap_ms) if delay_ms > cap_ms => GiveUp::too_long(delay_ms, cap_ms, failure).into(),
            _ => {
                let ask = Ask::new(target, Duration::from_millis(delay_ms)).because(reason(question));
                Ask { drops_failed, ..ask }.into()
            }
        }
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        let begin = || if self.reverts && call.is_free(0) { 0 } else { call.current_or_free() };
        call.after_wait().unwrap_or_else(begin)
    }

    fn chooses_targets(&self) -> bool {
        true
    }

    fn saved(&self) -> Option<Value> {
        let figures = [
            ("name", Value::from(Self::NAME)),
            ("baseMs", wait_ms(self.base).into()),
            ("maxDelayMs", self.max_delay.map(wait_ms).into()),
            ("maxRetries", self.max_retries.into()),
            ("reverts", self.reverts.into()),
        ];
        let jitter = (self.jitter != 0.0).then(|| ("jitter", self.jitter.into()));
        Some(figures.into_iter().chain(jitter).collect())
    }

    fn max_retries(&self) -> Option<u32> {
        Some(self.max_retries)
    }
}
