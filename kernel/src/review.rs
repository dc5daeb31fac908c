//! Automatic reviews of tool calls: their attempts and waits, and the denials that end a turn.

use alloc::string::String;
use core::time::Duration;

use everturn_wire::{Category, Failure, Verdict};

use crate::{
    Jitter, Millis,
    millis::{LONGEST_WAIT_MS, wait_ms},
};

/// Maximum number of attempts of a review.
const MAX_ATTEMPTS: u32 = 3;

/// Wait before the second attempt, in milliseconds. Doubles before the third.
const FIRST_WAIT_MS: u64 = 200;

/// Maximum deviation of a wait, as a fraction of it.
const JITTER: f64 = 0.1;

/// Number of consecutive denials that end the turn.
const MAX_DENIED_IN_ROW: u32 = 3;

/// Number of denials among the last [`REMEMBERED`] reviews that end the turn.
const MAX_DENIED: u32 = 10;

/// Number of reviews counted for [`MAX_DENIED`].
const REMEMBERED: u32 = 50;

/// The result of one attempt of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReviewAnswer {
    /// The reviewer decided.
    Assessed(Assessment),
    /// The answer is not an assessment, for this reason. Tried again.
    Unreadable(String),
    /// The reviewer could not be reached, or gave no answer. Tried again if that may pass, no earlier than its hint.
    Failed(Failure),
    /// The reviewer was not called, because its target is known to refuse calls for now. Tried again when the hint
    /// expires, which uses up no attempt.
    Held(Failure),
}

/// A reviewer's decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assessment {
    /// Whether the call may run.
    pub allows: bool,
    /// The rating of the risk, in the reviewer's own words.
    pub risk_level: Option<String>,
    /// The rating of how far the user asked for the call, in the reviewer's own words.
    pub user_authorization: Option<String>,
    /// The reason. The model receives the reason for a denial.
    pub rationale: Option<String>,
}

/// A reviewer's move from one target to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewerSwitch {
    /// The step that made the reviewed call.
    pub step: u32,
    /// The id of the call.
    pub call_id: String,
    /// The target that failed, as `provider/model`.
    pub from: String,
    /// The new target, as `provider/model`.
    pub to: String,
    /// The reason, for people.
    pub reason: String,
}

/// A review in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Review {
    pub(crate) since: Millis,
    /// When the whole review times out. Set once; neither attempts nor restarts move it.
    pub(crate) deadline: Millis,
    /// The number of the attempt in progress or waited for, from 0.
    pub(crate) attempt: u32,
    /// When that attempt begins; `None` if it is in progress.
    pub(crate) next_at: Option<Millis>,
}

/// An attempt of a review that should be running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReviewAttempt {
    /// The number within the review, from 0.
    pub number: u32,
    /// When the review times out.
    pub deadline: Millis,
}

impl Review {
    pub(crate) fn new(now: Millis, within_ms: u64) -> Self {
        Self { since: now, deadline: now.plus(within_ms), attempt: 0, next_at: None }
    }

    /// Returns when the turn must look at the review again.
    pub(crate) fn due_at(&self) -> Millis {
        self.next_at.map_or(self.deadline, |next| next.min(self.deadline))
    }

    /// Returns the number of attempts begun.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempt + u32::from(self.next_at.is_none())
    }

    pub(crate) fn under_way(&self) -> Option<ReviewAttempt> {
        let Self { attempt, deadline, .. } = *self;
        self.next_at.is_none().then_some(ReviewAttempt { number: attempt, deadline })
    }

    /// Returns the review with its next attempt scheduled; `None` if none is left, or if the hint expires only after the
    /// deadline. `key` identifies the call.
    pub(crate) fn after_failure(self, now: Millis, key: u64, hint_ms: Option<u64>) -> Option<Self> {
        let wait = Duration::from_millis(FIRST_WAIT_MS << self.attempt.min(MAX_ATTEMPTS));
        let wait = wait_ms(Jitter::new(JITTER, key, self.attempt).spread(wait));
        let attempt = self.attempt + 1;
        let next = Self { attempt, ..self }.waiting(now, wait.max(hint_ms.unwrap_or(0)));
        (attempt < MAX_ATTEMPTS && (hint_ms.is_none() || next.is_in_time())).then_some(next)
    }

    /// Returns the review with its current attempt put off for this long, and at least for the first wait.
    pub(crate) fn put_off(self, now: Millis, wait_ms: u64) -> Self {
        self.waiting(now, wait_ms.max(FIRST_WAIT_MS))
    }

    fn waiting(self, now: Millis, wait_ms: u64) -> Self {
        Self { next_at: Some(now.plus(wait_ms.min(LONGEST_WAIT_MS))), ..self }
    }

    /// Whether the next attempt begins before the deadline.
    pub(crate) fn is_in_time(&self) -> bool {
        self.next_at.is_none_or(|next| next < self.deadline)
    }

    /// Shortens waits after a restart if the clock was set back, so that they are no longer than decided.
    pub(crate) fn clamp(&mut self, now: Millis) {
        let since = self.since;
        let clamp = |at: &mut Millis| *at = (*at).min(now.plus(at.since(since)));
        clamp(&mut self.deadline);
        self.next_at.iter_mut().for_each(clamp);
    }
}

/// Whether another attempt may succeed. Decided by category, never by message text. A limit passes only when its hint
/// expires: asking again within a second would be refused again.
pub(crate) fn is_transient(failure: &Failure) -> bool {
    use Category::{InvalidResponse, Network, Overloaded, QuotaExhausted, RateLimited, ServerError, Timeout};
    match failure.category {
        RateLimited | QuotaExhausted => failure.hint_ms.is_some(),
        Overloaded | ServerError | Network | Timeout | InvalidResponse => true,
        _ => false,
    }
}

/// Returns the public verdict for a review that ends with this failure. It does not time out: only its deadline does
/// that.
pub(crate) fn verdict(failure: &Failure) -> Verdict {
    match failure.category {
        Category::Cancelled => Verdict::Cancelled,
        _ => Verdict::Failed,
    }
}

/// The latest reviews of a turn that reached a decision, one bit each: the lowest is the latest, and set means denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Breaker(pub(crate) u64);

impl Breaker {
    pub(crate) fn note(&mut self, is_denied: bool) {
        self.0 = (self.0 << 1 | u64::from(is_denied)) & ((1 << REMEMBERED) - 1);
    }

    /// Whether the turn must end.
    pub(crate) fn is_open(self) -> bool {
        self.0.trailing_ones() >= MAX_DENIED_IN_ROW || self.0.count_ones() >= MAX_DENIED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_denials_in_a_row_are_enough() {
        let mut breaker = Breaker::default();
        for (is_denied, is_open) in
            [(true, false), (true, false), (false, false), (true, false), (true, false), (true, true)]
        {
            breaker.note(is_denied);
            assert_eq!(breaker.is_open(), is_open, "{breaker:?}");
        }
    }

    #[test]
    fn ten_denials_among_the_last_fifty_are_enough() {
        let mut breaker = Breaker::default();
        // One denial in five reviews makes ten in fifty.
        let opened = (0..100).find(|at| {
            breaker.note(at % 5 == 0);
            breaker.is_open()
        });
        assert_eq!(opened, Some(45));
        let mut rare = Breaker::default();
        for at in 0..1_000 {
            rare.note(at % 6 == 0);
            assert!(!rare.is_open(), "{at}: {rare:?}");
        }
    }

    #[test]
    fn waits_double_and_are_spread_by_a_tenth() {
        let review = Review::new(Millis(1_000), 90_000);
        let mut seen = [(u64::MAX, 0); 2];
        for key in 0..2_000 {
            let second = review.after_failure(Millis(2_000), key, None).unwrap();
            let third = second.after_failure(Millis(2_000), key, Some(1)).unwrap();
            assert_eq!(third.after_failure(Millis(2_000), key, None), None, "three attempts are all");
            for (seen, review) in seen.iter_mut().zip([second, third]) {
                let wait = review.next_at.unwrap().since(Millis(2_000));
                *seen = (seen.0.min(wait), seen.1.max(wait));
            }
        }
        assert_eq!(seen, [(181, 220), (361, 440)], "the whole range is used");
    }

    #[test]
    fn a_hint_is_waited_for_if_it_expires_before_the_deadline() {
        let review = Review::new(Millis(1_000), 90_000);
        let after =
            |hint_ms| review.after_failure(Millis(2_000), 0, Some(hint_ms)).and_then(|next| next.next_at);
        assert_eq!(after(88_999), Some(Millis(90_999)));
        assert_eq!([after(89_000), after(u64::MAX)], [None, None]);
        let held = review.put_off(Millis(2_000), 30_000);
        assert_eq!((held.next_at, held.attempts(), held.is_in_time()), (Some(Millis(32_000)), 0, true));
        assert!(!review.put_off(Millis(2_000), 89_000).is_in_time());
        assert_eq!(review.put_off(Millis(2_000), 0).next_at, Some(Millis(2_200)), "never at once");
    }
}
