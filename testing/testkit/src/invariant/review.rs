//! Reviews: the number of their attempts, the waits between them, and their deadline.

use std::collections::HashMap;

use everturn_kernel::{Millis, ReviewAnswer};
use everturn_wire::{Category, EventBody, Verdict};

use super::Violation;
use crate::Fact;

/// Maximum number of attempts.
const MAX_ATTEMPTS: u32 = 3;

/// Minimum waits before the second and the third attempt, in milliseconds: 200 and 400, less a tenth.
const MIN_WAITS_MS: [u64; 2] = [180, 360];

#[derive(Clone, Debug, Default)]
pub(super) struct Reviews {
    /// The reviews in progress, by call.
    open: HashMap<String, Review>,
    /// Whether a process ended: what expired meanwhile ends late, and attempts are repeated.
    restarted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Review {
    /// Known from the first attempt on.
    deadline: Option<Millis>,
    /// Number of attempts made.
    made: u32,
    /// The earliest start of the next attempt; `None` if there must be none.
    next_from: Option<Millis>,
}

impl Reviews {
    pub(super) fn see(&mut self, at: Millis, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::Told(EventBody::ReviewStarted { tool_call_id, .. }) => {
                let review = Review { deadline: None, made: 0, next_from: Some(at) };
                self.open.insert(tool_call_id.clone(), review);
                Ok(())
            }
            Fact::Reviewed { id, attempt, deadline } => self.begins(at, id, *attempt, *deadline),
            Fact::Assessed { id, answer } => {
                if let Some(review) = self.open.get_mut(id) {
                    review.ends(at, answer);
                }
                Ok(())
            }
            Fact::Told(EventBody::ReviewCompleted { tool_call_id, verdict, attempt_count, .. }) => {
                self.completed(at, tool_call_id, *verdict, *attempt_count)
            }
            Fact::Restarted => {
                self.restarted = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begins(&mut self, at: Millis, id: &str, attempt: u32, deadline: Millis) -> Result<(), Violation> {
        let restarted = self.restarted;
        let Some(review) = self.open.get_mut(id) else {
            return Err(Violation::new(format!("an attempt to review {id}, of which no review began")));
        };
        ensure!(attempt < MAX_ATTEMPTS, "attempt {attempt} to review {id}");
        // An attempt that a crash interrupted is repeated with its number, even if its answer was lost.
        let is_expected = attempt == review.made || (restarted && attempt < review.made);
        ensure!(is_expected, "attempt {attempt} to review {id}, expected {}", review.made);
        let is_moved = review.deadline.is_some_and(|known| known != deadline);
        ensure!(
            !is_moved || restarted,
            "attempt {attempt} to review {id} moves the deadline to {deadline:?}"
        );
        review.deadline = Some(deadline);
        let is_in_time = restarted || at < deadline || review.made == 0;
        ensure!(is_in_time, "attempt {attempt} to review {id} after the deadline");
        let is_due = restarted || review.next_from.is_some_and(|from| from <= at);
        ensure!(is_due, "attempt {attempt} to review {id} at {at:?}, expected from {:?}", review.next_from);
        (review.made, review.next_from) = (attempt + 1, None);
        Ok(())
    }

    fn completed(&mut self, at: Millis, id: &str, verdict: Verdict, count: u32) -> Result<(), Violation> {
        let Some(review) = self.open.remove(id) else { return Ok(()) };
        let Some(deadline) = review.deadline else { return Ok(()) };
        let is_late = at > deadline;
        ensure!(!is_late || self.restarted, "the review of {id} ends after its deadline");
        let is_early = verdict == Verdict::TimedOut && at < deadline;
        ensure!(!is_early || self.restarted, "the review of {id} times out before its deadline");
        let made = review.made;
        ensure!(count == made || self.restarted, "the review of {id} reports {count} attempts, made {made}");
        Ok(())
    }
}

impl Review {
    /// Handles the end of an attempt.
    fn ends(&mut self, at: Millis, answer: &ReviewAnswer) {
        let attempt = self.made.saturating_sub(1);
        let backoff_ms = MIN_WAITS_MS.get(attempt as usize).copied();
        self.next_from = match answer {
            ReviewAnswer::Held(failure) => {
                self.made = attempt;
                Some(at.plus(failure.hint_ms.unwrap_or(0).max(MIN_WAITS_MS[0])))
            }
            ReviewAnswer::Unreadable(_) => backoff_ms.map(|wait_ms| at.plus(wait_ms)),
            ReviewAnswer::Failed(failure) => {
                let is_limit = matches!(failure.category, Category::RateLimited | Category::QuotaExhausted);
                let wait_ms = backoff_ms.filter(|_| !is_limit || failure.hint_ms.is_some());
                wait_ms.map(|wait_ms| at.plus(wait_ms.max(failure.hint_ms.unwrap_or(0))))
            }
            _ => None,
        };
    }
}
