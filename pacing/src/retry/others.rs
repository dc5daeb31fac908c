//! Which other target could be asked, and when.

use alloc::{format, string::String};

use everturn_kernel::{Health, Question, Seen, is_of_request, is_refusal};
use everturn_wire::Category;

/// Returns the targets that may be asked instead of the failed one, as indexes. Excludes those that would send the same
/// request. Empty if the failure was caused by the request.
pub(super) fn others<'a>(question: &'a Question<'_>) -> impl Iterator<Item = usize> + 'a {
    let moves = !is_of_request(question.failure.category);
    let is_other = |index: &usize| !question.targets[*index].is_same_request(question.failed());
    question.left().filter(move |index| moves && is_other(index))
}

/// Returns the target that can be asked first, and in how many milliseconds. The failed target counts with the wait
/// `own_ms`, unless it failed for good. The others count with their marks, but no earlier than the schedule's wait.
/// Ignores targets that refuse until somebody changes something.
pub(super) fn earliest(
    question: &Question<'_>,
    known: &Health,
    own_ms: Option<u64>,
    scheduled_ms: u64,
) -> Option<(u64, usize)> {
    let unblock = |index: usize| {
        let free_at = known.free_at(question.now, &question.targets[index]);
        (free_at.since(question.now).max(scheduled_ms), index)
    };
    // If waits are equal, prefer the failed target, because staying needs no switch.
    let own = own_ms.map(|own_ms| (own_ms, question.ledger.target));
    let refuses = |index: &usize| {
        let mark = known.mark(question.now, &question.targets[*index]);
        mark.is_some_and(|mark| is_refusal(mark.category))
    };
    let other = others(question).filter(|index| !refuses(index)).map(unblock).min();
    own.into_iter().chain(other).min_by_key(|(wait_ms, _)| *wait_ms)
}

/// Returns how much is left of the longest hint that a target gave in this step, in milliseconds.
pub(super) fn hinted_ms(question: &Question<'_>, target: usize) -> u64 {
    let last = Seen::new(question.now, question.ledger, question.failure);
    let of_target = question.ledger.failures.iter().chain([&last]).filter(|seen| seen.target == target);
    of_target.map(|seen| seen.hint_ends().since(question.now)).max().unwrap_or(0)
}

/// Returns the reason for leaving a target, in words.
pub(super) fn reason(question: &Question<'_>) -> String {
    let what = match question.failure.category {
        Category::Overloaded => "is overloaded",
        Category::RateLimited => "is rate limited",
        Category::QuotaExhausted => "has reached its usage limit",
        Category::Auth => "refused the credential",
        Category::Permission => "does not permit this request",
        Category::NotFound => "does not have the model",
        Category::Network => "cannot be reached",
        Category::Timeout => "did not answer in time",
        Category::InvalidResponse => "sent an invalid answer",
        _ => "failed",
    };
    format!("{} {what}", question.failed().name)
}
