//! The answer to a failure: ask a target after a wait, or give up.

use alloc::{borrow::Cow, format, string::String};
use core::time::Duration;

use everturn_wire::{Failure, RetryOutcome};

use crate::{Health, Ledger, Millis, Target};

static NOTHING_KNOWN: Health = Health::new();

/// A failure put to a schedule: what failed, on which target, and what happened earlier in the step.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The time.
    pub now: Millis,
    /// A hash of the turn's id: draw jitter from it.
    pub key: u64,
    /// The failure. It may be final, because another target may still succeed.
    pub failure: &'a Failure,
    /// What happened earlier in the step.
    pub ledger: &'a Ledger,
    /// The targets of the turn; never empty.
    pub targets: &'a [Target],
    /// What other turns have found out about the targets. The kernel knows nothing of them: see [`Question::knowing`].
    pub health: &'a Health,
}

impl<'a> Question<'a> {
    /// A question of a turn without a name: its key is 0.
    pub fn new(now: Millis, failure: &'a Failure, ledger: &'a Ledger, targets: &'a [Target]) -> Self {
        Self { now, key: 0, failure, ledger, targets, health: &NOTHING_KNOWN }
    }

    /// The same question, asked by someone who knows this of the targets.
    #[must_use]
    pub fn knowing(self, health: &'a Health) -> Self {
        Self { health, ..self }
    }

    /// The target that failed.
    pub fn failed(&self) -> &'a Target {
        &self.targets[self.ledger.target]
    }

    /// The targets that may be asked in this step, as indexes.
    pub fn left(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.targets.len()).filter(|index| !self.ledger.out.contains(index))
    }
}

/// A call that is about to be made: at the start of a step, or after a wait. Which target should it ask?
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NextCall<'a> {
    /// The time.
    pub now: Millis,
    /// The target that was asked last, or that was waited for, as an index; the first one when the turn begins.
    pub current: usize,
    /// The targets of the turn.
    pub targets: &'a [Target],
    /// What happened in the step so far, if it has begun.
    pub ledger: Option<&'a Ledger>,
    /// What is known of the targets, as in [`Question::health`].
    pub health: &'a Health,
}

impl<'a> NextCall<'a> {
    /// The first call of a step, by someone who knows nothing about the targets.
    pub fn new(now: Millis, current: usize, targets: &'a [Target]) -> Self {
        Self { now, current, targets, ledger: None, health: &NOTHING_KNOWN }
    }

    /// The same, by someone who knows this about the targets.
    #[must_use]
    pub fn knowing(self, health: &'a Health) -> Self {
        Self { health, ..self }
    }

    /// Whether a target may be asked: nothing is known against it, nor did it fail in this step.
    pub fn is_free(&self, target: usize) -> bool {
        let Some(asked) = self.targets.get(target) else { return false };
        let is_out = self.ledger.is_some_and(|ledger| ledger.out.contains(&target));
        let mut own = Health::new();
        for seen in self.ledger.map_or(&[][..], |ledger| &ledger.failures) {
            if let Some(failed) = self.targets.get(seen.target) {
                own.fail(seen.at, failed, seen.category, seen.hint_ms);
            }
        }
        !is_out && [self.health, &own].iter().all(|health| health.free_at(self.now, asked) <= self.now)
    }

    /// After a wait: the target that was waited for, unless others found out meanwhile that it is limited; then a free one.
    /// `None` at the start of a step.
    pub(crate) fn after_wait(&self) -> Option<usize> {
        self.ledger?;
        let current = self.targets.get(self.current)?;
        let is_walled = self.health.walled_until(self.now, current) > self.now;
        Some(if is_walled { self.current_or_free() } else { self.current })
    }

    /// The target that was asked last if it is free, else the first free one, else the one that was asked last.
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
    /// Which one, as an index.
    pub target: usize,
    /// How long to wait first. If the same request is repeated, the wait is extended to the provider's hint unless `clamped`
    /// is set.
    pub wait: Duration,
    /// The wait is shorter than the target's own hint on purpose: it is not lengthened, and watchers are told.
    pub clamped: bool,
    /// The target that failed is not asked again in this step.
    pub drops_failed: bool,
    /// It does not count against the schedule's maximum of retries.
    pub uncounted: bool,
    /// A cycle of failures is over: the next one begins empty.
    pub ends_cycle: bool,
    /// The wait is for a usage limit to reset, which takes hours or days: the budget does not cover it, only its deadline.
    pub is_wall: bool,
    /// The reason, for people. Published with `target-switched`.
    pub reason: Cow<'static, str>,
}

impl Ask {
    /// Asks that target after a wait.
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

    /// With this reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.reason = reason.into();
        self
    }
}

/// Ending the turn with the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GiveUp {
    /// How the chain of retries ended.
    pub outcome: RetryOutcome,
    /// More about it, for people.
    pub detail: Option<String>,
}

impl From<RetryOutcome> for GiveUp {
    fn from(outcome: RetryOutcome) -> Self {
        Self { outcome, detail: None }
    }
}

impl GiveUp {
    /// The wait is longer than is allowed.
    pub fn too_long(wait_ms: u64, cap_ms: u64, failure: &Failure) -> Self {
        let (wait, cap) = (wait_ms.div_ceil(1000), cap_ms / 1000);
        let detail = format!(
            "the next attempt would be in {wait} s, longer than the limit of {cap} s: {}",
            failure.message
        );
        Self { outcome: RetryOutcome::TooLong, detail: Some(detail) }
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
