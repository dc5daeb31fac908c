//! Exponential backoff: the presets `exponential` and `interactive`.

use core::time::Duration;

use everturn_kernel::{
    Ask, Directive, GiveUp, Health, Jitter, NextCall, Question, Retry, Schedule, decide_alone, is_of_request,
    wait_ms,
};
use everturn_wire::{Category, RetryOutcome};

use super::others::{earliest, others, reason};

/// Exponential backoff: `base`, 2 x `base`, 4 x `base` ..., for `max_retries` retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The first wait.
    pub base: Duration,
    /// The longest wait; `None` = no limit.
    pub max_delay: Option<Duration>,
    /// Maximum number of retries of a step, including switches.
    pub max_retries: u32,
    /// Maximum deviation as a fraction of the wait, 0 to 1, so that many turns do not return at the same moment; 0 =
    /// exact. A wait from a hint is only lengthened, by at most 2 % and 1 s.
    pub jitter: f64,
    /// Seed of the jitter. Together with the turn and the attempt it determines each wait.
    pub seed: u64,
    /// How it moves between several targets, which makes it the preset `interactive`; `None` = it only waits.
    pub switching: Option<Switching>,
}

/// How a schedule moves to another target before any wait, for interactive use. It tries in this order: a free
/// credential of the same model (at a usage limit), the next free target of the route, a wait. A wait longer than
/// `max_delay` is not shortened, but fails at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switching {
    /// Whether a step goes back to the first target once that target is free again.
    pub reverts: bool,
}

impl Default for Exponential {
    /// 2 s, 4 s, 8 s, exact: three retries.
    fn default() -> Self {
        Self {
            base: Duration::from_secs(2),
            max_delay: Some(Duration::from_secs(300)),
            max_retries: 3,
            jitter: 0.0,
            seed: 0,
            switching: None,
        }
    }
}

impl Exponential {
    /// The same for interactive use: moves to another target before any wait, and goes back when a cooldown expires.
    pub fn interactive() -> Self {
        Self { switching: Some(Switching { reverts: true }), ..Self::default() }
    }

    /// Returns its name in settings.
    pub fn name(&self) -> &'static str {
        if self.switching.is_some() { "interactive" } else { "exponential" }
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
        Jitter::new(self.jitter, self.seed ^ key, attempt)
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

impl Schedule for Exponential {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        if retry.attempt >= self.max_retries {
            return None;
        }
        let doubled = self.base.saturating_mul(2u32.saturating_pow(retry.attempt));
        let cap = self.max_delay.filter(|_| self.switching.is_none());
        let exact = cap.map_or(doubled, |cap| doubled.min(cap));
        let jitter = self.jitter(retry.key, retry.attempt);
        let spread = jitter.spread(exact);
        Some(match self.switching {
            _ if spread == exact => exact,
            Some(_) => Duration::from_millis(self.within(wait_ms(exact), wait_ms(spread))),
            None => spread.max(jitter.lengthen(Duration::from_millis(retry.failure.hint_ms.unwrap_or(0)))),
        })
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        if self.switching.is_none() {
            return decide_alone(self, question);
        }
        let Question { failure, ledger, key, .. } = *question;
        let is_final = !failure.retryable && failure.category != Category::QuotaExhausted;
        let final_outcome = if is_final { RetryOutcome::NotRetryable } else { RetryOutcome::Exhausted };
        if is_final && is_of_request(failure.category) {
            return final_outcome.into();
        }
        let Some(scheduled) = self.delay_for(&Retry::with_key(ledger.counted(), failure, key)) else {
            return final_outcome.into();
        };
        let known = question.known();
        let drops_failed = is_final;
        if let Some(target) = Self::candidate(question, &known) {
            let mut ask = Ask::new(target, Duration::ZERO).because(reason(question));
            ask.drops_failed = drops_failed;
            return ask.into();
        }
        let scheduled_ms = wait_ms(scheduled);
        let own_ms = self.own_ms(question, &known, scheduled_ms);
        let Some((delay_ms, target)) = earliest(question, &known, own_ms, scheduled_ms) else {
            return final_outcome.into();
        };
        match self.max_delay.map(wait_ms) {
            Some(cap_ms) if delay_ms > cap_ms => GiveUp::too_long(delay_ms, cap_ms, failure).into(),
            _ => {
                let mut ask = Ask::new(target, Duration::from_millis(delay_ms)).because(reason(question));
                ask.drops_failed = drops_failed;
                ask.into()
            }
        }
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        let Some(Switching { reverts }) = self.switching else { return call.current };
        let begin = || if reverts && call.is_free(0) { 0 } else { call.current_or_free() };
        call.after_wait().unwrap_or_else(begin)
    }

    fn chooses_targets(&self) -> bool {
        self.switching.is_some()
    }

    fn max_retries(&self) -> Option<u32> {
        Some(self.max_retries)
    }
}
