//! Round robin over the targets; the kind of failure decides whether a target is repeated, passed over or dropped.

use alloc::vec::Vec;
use core::time::Duration;

use everturn_wire::{Category, RetryOutcome, Value};

use super::reason;
use crate::{
    Ask, Directive, Ledger, Millis, Question, Retry, Schedule, Seen,
    health::{is_of_request, is_of_target},
};

/// The shortest and the longest wait for a rate limit, in milliseconds.
const CLAMP: (u64, u64) = (1_000, 60_000);
/// The longest wait after trouble with the network, in milliseconds.
const LONGEST_NETWORK_MS: u64 = 30_000;

/// Asks the targets in turn. A cycle in which all of them were rate limited ends with the longest of their waits; a cycle
/// with other failures in it does not wait for its rate limits. Network trouble and timeouts wait a little, a failed model
/// is asked again at once, and a target that fails for good is left out for the rest of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycling {
    /// Calls of a step in all: 3 = three calls, and no more than two retries.
    pub max_attempts: u32,
    /// Whether hints are clamped to 1 to 60 s, and a cycle with other failures asks again before they are over. Off, no
    /// target is asked earlier than it said.
    pub clamp_hints: bool,
}

impl Default for Cycling {
    /// Three calls; hints are clamped.
    fn default() -> Self {
        Self { max_attempts: 3, clamp_hints: true }
    }
}

impl Cycling {
    /// Its name where it is saved.
    pub const NAME: &str = "cycling";

    /// The one that was saved in this form.
    pub fn restore(saved: &Value) -> Option<Self> {
        let max_attempts = saved["maxAttempts"].as_u64()?.try_into().ok()?;
        Some(Self { max_attempts, clamp_hints: saved["clampHints"].as_bool()? })
    }

    /// The wait for a rate limit.
    fn limit_ms(&self, seen: &Seen) -> u64 {
        let own = (u64::from(seen.retries) + 1) * 1_000;
        let asked = seen.hint_ms.unwrap_or(own.clamp(CLAMP.0, CLAMP.1));
        if self.clamp_hints { asked.clamp(CLAMP.0, CLAMP.1) } else { asked }
    }

    /// The wait for a failure by itself: for the network, and for the hint where the same target is next.
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

    /// Asks a target after a wait. What is left of its own hints lengthens the wait, or is told to be cut short.
    fn ask(&self, question: &Question<'_>, seen: &Seen, next: usize, wait_ms: u64) -> Ask {
        let said = question.ledger.failures.iter().chain([seen]).filter(|seen| seen.target == next);
        let hint_ms = said.map(|seen| seen.hint_ends().since(question.now)).max().unwrap_or(0);
        let (wait_ms, clamped) = match wait_ms {
            _ if wait_ms >= hint_ms => (wait_ms, false),
            _ if self.clamp_hints => (wait_ms, true),
            _ => (hint_ms, false),
        };
        Ask { clamped, ..Ask::new(next, Duration::from_millis(wait_ms)).because(reason(question)) }
    }

    /// The wait for the rate limits of a cycle that is over. One in which a target that is still left failed in another way
    /// does not wait for them.
    fn cycle_ms(&self, cycle: &[Seen], left: &[usize]) -> u64 {
        // A target that was repeated at once is judged by its last failure.
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
        let seen =
            Seen::now(Millis(0), &Ledger { retries: retry.attempt, ..Ledger::default() }, retry.failure);
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
        let seen = Seen::now(now, ledger, failure);
        if failure.category == Category::ServerError && failure.retryable {
            return self.ask(question, &seen, current, self.own_ms(&seen, true)).into();
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
        let ask = self.ask(question, &seen, next, own_ms.max(cycle_ms));
        Ask { drops_failed: drops, ends_cycle: is_over, ..ask }.into()
    }

    fn chooses_targets(&self) -> bool {
        true
    }

    fn ignores_holds(&self) -> bool {
        self.clamp_hints
    }

    fn saved(&self) -> Option<Value> {
        Some(Value::from_iter([
            ("name", Value::from(Self::NAME)),
            ("maxAttempts", self.max_attempts.into()),
            ("clampHints", self.clamp_hints.into()),
        ]))
    }

    fn max_retries(&self) -> Option<u32> {
        Some(self.max_attempts.saturating_sub(1))
    }
}

fn is_limit(category: Category) -> bool {
    matches!(category, Category::RateLimited | Category::Overloaded)
}
