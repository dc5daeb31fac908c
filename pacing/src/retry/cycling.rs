//! Round robin over the targets. The kind of failure decides whether a target is repeated, skipped or dropped.

use alloc::vec::Vec;
use core::time::Duration;

use everturn_kernel::{
    Ask, Directive, Ledger, Millis, NextCall, Question, Retry, Schedule, Seen, is_of_request, is_of_target,
};
use everturn_wire::{Category, RetryOutcome};

use super::others::{hinted_ms, reason};

/// Minimum and maximum wait for a rate limit, in milliseconds.
const CLAMP: (u64, u64) = (1_000, 60_000);
/// Maximum wait after a network failure, in milliseconds.
const LONGEST_NETWORK_MS: u64 = 30_000;

/// Asks the targets in turn. If all targets of a cycle were rate limited, waits for the longest of their limits;
/// otherwise does not wait for rate limits. Waits briefly after network failures and timeouts, asks again at once after
/// a model failure, and drops a target that fails for good for the rest of the step. A failed reply of a turn that must
/// report moves on, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycling {
    /// Maximum number of calls of a step: 3 means at most two retries.
    pub max_attempts: u32,
    /// Whether to clamp hints to 1..=60 s and to start the next cycle before rate limits expire if the cycle had other
    /// failures. If false, no target is asked before its hint expires.
    pub clamp_hints: bool,
    /// Whether a step begins with the target that answered last. If false, it begins with the first target whose hint
    /// has expired.
    pub sticky: bool,
}

impl Default for Cycling {
    /// Three calls, with clamped hints; each step begins with the first target.
    fn default() -> Self {
        Self { max_attempts: 3, clamp_hints: true, sticky: false }
    }
}

impl Cycling {
    /// Returns the wait for a rate limit, in milliseconds.
    fn limit_ms(&self, seen: &Seen) -> u64 {
        let own = (u64::from(seen.retries) + 1) * 1_000;
        let asked = seen.hint_ms.unwrap_or(own.clamp(CLAMP.0, CLAMP.1));
        if self.clamp_hints { asked.clamp(CLAMP.0, CLAMP.1) } else { asked }
    }

    /// Returns the wait for one failure, in milliseconds: for the network, or for the hint if the same target is next.
    fn own_ms(&self, seen: &Seen, is_next: bool) -> u64 {
        let network_ms = match seen.category {
            Category::Network | Category::Timeout => {
                ((u64::from(seen.retries) + 1) * 1_000).min(LONGEST_NETWORK_MS)
            }
            _ => 0,
        };
        let hint_ms = seen.hint_ms.filter(|_| is_next).map_or(0, |_| self.limit_ms(seen));
        network_ms.max(hint_ms)
    }

    /// Asks a target after a wait. The rest of the target's hint either lengthens the wait or is reported as cut short.
    fn ask(&self, question: &Question<'_>, next: usize, wait_ms: u64) -> Ask {
        let hint_ms = hinted_ms(question, next);
        let (wait_ms, clamped) = match wait_ms {
            _ if wait_ms >= hint_ms => (wait_ms, false),
            _ if self.clamp_hints => (wait_ms, true),
            _ => (hint_ms, false),
        };
        let mut ask = Ask::new(next, Duration::from_millis(wait_ms)).because(reason(question));
        ask.clamped = clamped;
        ask
    }

    /// Returns the wait for the rate limits of a completed cycle, in milliseconds; 0 if a remaining target failed in
    /// another way.
    fn cycle_ms(&self, cycle: &[Seen], left: &[usize]) -> u64 {
        // A target that was repeated at once counts with its last failure.
        let last_of = |target: &usize| cycle.iter().rev().find(|seen| seen.target == *target);
        let last: Vec<&Seen> = left.iter().filter_map(last_of).collect();
        if last.iter().any(|seen| !is_limit(seen.category)) {
            return 0;
        }
        last.iter().map(|seen| self.limit_ms(seen)).max().unwrap_or(0)
    }
}

impl Schedule for Cycling {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        let mut ledger = Ledger::default();
        ledger.retries = retry.attempt;
        let seen = Seen::new(Millis(0), &ledger, retry.failure);
        (retry.attempt + 1 < self.max_attempts).then(|| Duration::from_millis(self.limit_ms(&seen)))
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        let Question { now, failure, ledger, .. } = *question;
        let drops =
            is_of_target(failure.category) || (!failure.retryable && !is_of_request(failure.category));
        if !failure.retryable && !drops {
            return RetryOutcome::NotRetryable.into();
        }
        if ledger.counted().saturating_add(1) >= self.max_attempts {
            return RetryOutcome::Exhausted.into();
        }
        let current = ledger.target;
        let seen = Seen::new(now, ledger, failure);
        if failure.category == Category::ServerError && failure.retryable {
            return self.ask(question, current, self.own_ms(&seen, true)).into();
        }
        let left: Vec<usize> = question.left().filter(|index| !(drops && *index == current)).collect();
        let Some(next) = left.iter().copied().find(|index| *index > current).or(left.first().copied()) else {
            return RetryOutcome::NotRetryable.into();
        };
        let mut cycle = ledger.cycle().to_vec();
        cycle.push(seen);
        let is_over = left.iter().all(|index| cycle.iter().any(|seen| seen.target == *index));
        let cycle_ms = if is_over { self.cycle_ms(&cycle, &left) } else { 0 };
        let own_ms = if drops { 0 } else { self.own_ms(&seen, next == current) };
        let mut ask = self.ask(question, next, own_ms.max(cycle_ms));
        (ask.drops_failed, ask.ends_cycle) = (drops, is_over);
        ask.into()
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        if call.ledger.is_none() && !self.sticky { 0 } else { call.current }
    }

    fn chooses_targets(&self) -> bool {
        true
    }

    fn ignores_holds(&self) -> bool {
        self.clamp_hints
    }

    fn counts_replies(&self) -> bool {
        true
    }

    fn max_retries(&self) -> Option<u32> {
        Some(self.max_attempts.saturating_sub(1))
    }
}

fn is_limit(category: Category) -> bool {
    matches!(category, Category::RateLimited | Category::Overloaded)
}
