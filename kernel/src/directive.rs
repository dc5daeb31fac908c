//! Directives: what to do about a failure.

use alloc::{borrow::Cow, format, string::String};
use core::time::Duration;

use everturn_wire::{Failure, RetryOutcome};

use crate::{
    Health, Ledger, Millis, Seen, Target,
    span::{at_least, at_most},
};

static NOTHING_KNOWN: Health = Health::new();

/// The question that a schedule answers: which target failed, how, and what happened earlier in the step.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The current time.
    pub now: Millis,
    /// A hash of the turn's id. Derive jitter from it.
    pub key: u64,
    /// The failure. Another target may succeed even if the failure is final.
    pub failure: &'a Failure,
    /// What happened earlier in the step.
    pub ledger: &'a Ledger,
    /// The targets of the turn; never empty.
    pub targets: &'a [Target],
    /// The longest wait that the step's budget still allows, in milliseconds; `None` = any. A longer one is refused,
    /// unless it is not charged to the budget ([`Ask::is_wall`]).
    pub left_ms: Option<u64>,
    /// What other turns have learnt about the targets. The kernel itself knows nothing about them; see
    /// [`Question::knowing`].
    pub health: &'a Health,
}

impl<'a> Question<'a> {
    /// Creates a question for a turn without a name or a budget: its key is 0.
    pub fn new(now: Millis, failure: &'a Failure, ledger: &'a Ledger, targets: &'a [Target]) -> Self {
        Self { now, key: 0, failure, ledger, targets, left_ms: None, health: &NOTHING_KNOWN }
    }

    /// Sets what is known about the targets.
    #[must_use]
    pub fn knowing(self, health: &'a Health) -> Self {
        Self { health, ..self }
    }

    /// Returns what is known about the targets, with the failures of this step, which others may not have reported yet.
    pub fn known(&self) -> Health {
        let mut known = self.health.clone();
        for seen in &self.ledger.failures {
            if let Some(target) = self.targets.get(seen.target) {
                known.fail(seen.at, target, seen.category, seen.hint_ms);
            }
        }
        known.note(self.now, self.failed(), self.failure);
        known
    }

    /// Returns the target that failed.
    pub fn failed(&self) -> &'a Target {
        &self.targets[self.ledger.target]
    }

    /// Returns the targets that this step may still ask, as indexes.
    pub fn left(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.targets.len()).filter(|index| !self.ledger.out.contains(index))
    }
}

/// The question which target the next call should ask, at the start of a step or after a wait.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NextCall<'a> {
    /// The current time.
    pub now: Millis,
    /// The target that was asked or waited for last, as an index; the first one when the turn begins.
    pub current: usize,
    /// The targets of the turn.
    pub targets: &'a [Target],
    /// What has happened in the step so far; `None` at its start.
    pub ledger: Option<&'a Ledger>,
    /// Failures of earlier steps whose hints have not expired. Empty after a wait: then they are in the ledger.
    pub hinted: &'a [Seen],
    /// What is known about the targets, as in [`Question::health`].
    pub health: &'a Health,
}

impl<'a> NextCall<'a> {
    /// Creates the question for the first call of a step, with nothing known about the targets.
    pub fn new(now: Millis, current: usize, targets: &'a [Target]) -> Self {
        Self { now, current, targets, ledger: None, hinted: &[], health: &NOTHING_KNOWN }
    }

    /// Sets what is known about the targets.
    #[must_use]
    pub fn knowing(self, health: &'a Health) -> Self {
        Self { health, ..self }
    }

    /// Whether a target may be asked: it has no mark, it has not failed in this step, and no hint keeps it from being
    /// asked.
    pub fn is_free(&self, target: usize) -> bool {
        let Some(asked) = self.targets.get(target) else { return false };
        let is_out = self.ledger.is_some_and(|ledger| ledger.out.contains(&target));
        let mut own = Health::new();
        let failures = self.ledger.map_or(&[][..], |ledger| &ledger.failures);
        for seen in failures.iter().chain(self.hinted) {
            if let Some(failed) = self.targets.get(seen.target) {
                own.fail(seen.at, failed, seen.category, seen.hint_ms);
            }
        }
        !is_out && [self.health, &own].iter().all(|health| health.free_at(self.now, asked) <= self.now)
    }

    /// Returns the target for a call after a wait: the one that was waited for, or a free one if that target has become
    /// limited meanwhile. `None` at the start of a step.
    pub fn after_wait(&self) -> Option<usize> {
        self.ledger?;
        let current = self.targets.get(self.current)?;
        let is_walled = self.health.walled_until(self.now, current) > self.now;
        Some(if is_walled { self.current_or_free() } else { self.current })
    }

    /// Returns the current target if it is free, else the first free one, else the current one.
    pub fn current_or_free(&self) -> usize {
        let free = || (0..self.targets.len()).find(|index| self.is_free(*index));
        if self.is_free(self.current) { self.current } else { free().unwrap_or(self.current) }
    }
}

/// The decision about a failure. The turn checks it against its budget, saves it and publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Ask a target after a wait.
    Ask(Ask),
    /// End the turn with the failure.
    GiveUp(GiveUp),
}

/// Asking a target after a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// The target, as an index.
    pub target: usize,
    /// Wait before the call. A repetition of the same request waits at least as long as the provider's hint, unless
    /// `clamped` is set.
    pub wait: Duration,
    /// The wait is deliberately shorter than the target's hint. It is not extended, and subscribers are told.
    pub clamped: bool,
    /// Do not ask the failed target again in this step.
    pub drops_failed: bool,
    /// Do not count this retry against the schedule's maximum.
    pub uncounted: bool,
    /// This failure ends a cycle; the next cycle starts without failures.
    pub ends_cycle: bool,
    /// The wait is for a limit to reset, which takes hours or days. It is not charged to the budget, but must end before
    /// the budget's deadline.
    pub is_wall: bool,
    /// The reason, for people. Published with `target-switched`.
    pub reason: Cow<'static, str>,
}

impl Ask {
    /// Creates a directive to ask this target after this wait.
    pub fn new(target: usize, wait: Duration) -> Self {
        Self {
            target,
            wait,
            clamped: false,
            drops_failed: false,
            uncounted: false,
            ends_cycle: false,
            is_wall: false,
            reason: Cow::Borrowed("the schedule"),
        }
    }

    /// Creates a directive to ask this target at once, because the last one is not available.
    pub(crate) fn at_once(target: usize) -> Self {
        Self::new(target, Duration::ZERO).because("the last target is not available")
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.reason = reason.into();
        self
    }
}

/// A directive to end the turn with the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GiveUp {
    /// How the chain of retries ended.
    pub outcome: RetryOutcome,
    /// Details, for people.
    pub detail: Option<String>,
}

impl From<RetryOutcome> for GiveUp {
    fn from(outcome: RetryOutcome) -> Self {
        Self { outcome, detail: None }
    }
}

impl GiveUp {
    /// Gives up, with details.
    pub fn new(outcome: RetryOutcome, detail: String) -> Self {
        Self { outcome, detail: Some(detail) }
    }

    /// Gives up because the wait is longer than allowed.
    pub fn too_long(wait_ms: u64, cap_ms: u64, failure: &Failure) -> Self {
        let detail = format!(
            "the next attempt would be in {}, longer than the limit of {}: {}",
            at_least(wait_ms),
            at_most(cap_ms),
            failure.message
        );
        Self::new(RetryOutcome::TooLong, detail)
    }
}

impl From<Ask> for Directive {
    fn from(ask: Ask) -> Self {
        Self::Ask(ask)
    }
}

impl From<GiveUp> for Directive {
    fn from(give_up: GiveUp) -> Self {
        Self::GiveUp(give_up)
    }
}

impl From<RetryOutcome> for Directive {
    fn from(outcome: RetryOutcome) -> Self {
        Self::GiveUp(outcome.into())
    }
}
