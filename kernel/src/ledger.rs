//! The ledger of a step: its failures and retries so far, which schedules are given.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{Category, Failure, RetryPhase, RetryState};

use crate::{
    Millis,
    compaction::{Compacted, Summarizing},
};

/// Failures that a ledger keeps at most: a schedule that never gives up must not make its turn grow.
const MOST_FAILURES: usize = 64;

/// What happened in a step so far. Starts anew with each step; saved with its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledger {
    /// Number of retries scheduled so far, switches included; also the 0-based number of the next one.
    pub retries: u32,
    /// How many of them do not count against the schedule's maximum: a person requested them while the provider was silent, or
    /// the schedule said so ([`crate::Ask::uncounted`]).
    pub uncounted: u32,
    /// The sum of their waits, in milliseconds, but for those that the budget does not cover: for usage limits, and for the
    /// network.
    pub waited_ms: u64,
    /// How often the step waited for a usage limit to reset ([`crate::Ask::is_wall`]), and for how many milliseconds in all.
    pub walls: u32,
    /// See `walls`.
    pub walled_ms: u64,
    /// The target that is being asked, as an index into the turn's targets.
    pub target: usize,
    /// The failures of the step that were answered with a retry, oldest first; at most the last 64. Empty where the turn
    /// has no targets by name.
    pub failures: Vec<Seen>,
    /// How many of the failures belong to cycles that are over.
    pub cycle_start: usize,
    /// Targets that are not asked again in this step, as indexes.
    pub out: Vec<usize>,
    /// The retry that was scheduled last, as it was told. Boxed: most calls have none.
    pub(crate) last: Option<Box<Scheduled>>,
    /// The calls are for a summary of the older history, not for the answer. Boxed: most steps make none.
    pub(crate) summarizing: Option<Box<Summarizing>>,
    pub(crate) compacted: Compacted,
}

/// A failure that was answered with a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it was.
    pub at: Millis,
    /// The target that failed, as an index.
    pub target: usize,
    /// The counted retries before it.
    pub retries: u32,
    /// What kind of failure it was.
    pub category: Category,
    /// The wait that the provider asked for, in milliseconds.
    pub hint_ms: Option<u64>,
}

/// A scheduled retry, kept for showing as long as the chain of retries goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// How long the wait was decided to be.
    pub(crate) delay_ms: u64,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) category: Category,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
    /// Another turn was refused, not this one.
    pub(crate) shared: bool,
}

impl Seen {
    /// A failure of the target that the ledger says is asked.
    pub(crate) fn now(now: Millis, ledger: &Ledger, failure: &Failure) -> Self {
        Self {
            at: now,
            target: ledger.target,
            retries: ledger.counted(),
            category: failure.category,
            hint_ms: failure.hint_ms,
        }
    }

    /// When the provider's hint is over.
    pub(crate) fn hint_ends(&self) -> Millis {
        self.at.plus(self.hint_ms.unwrap_or(0))
    }
}

impl Ledger {
    /// The ledger of a step that begins with that target.
    pub fn new(target: usize) -> Self {
        Self { target, ..Self::default() }
    }

    /// The ledger of the next calls of the same step, whose retries are counted anew: what was waited stays charged, and targets
    /// that are out stay out.
    pub(crate) fn next_series(&self, target: usize) -> Self {
        Self {
            waited_ms: self.waited_ms,
            walls: self.walls,
            walled_ms: self.walled_ms,
            out: self.out.clone(),
            compacted: self.compacted,
            ..Self::new(target)
        }
    }

    /// Returns the number of retries that count against the schedule's maximum.
    pub fn counted(&self) -> u32 {
        self.retries.saturating_sub(self.uncounted)
    }

    /// The failures of the current cycle: since the step began, or since a schedule last ended a cycle.
    pub fn cycle(&self) -> &[Seen] {
        self.failures.get(self.cycle_start..).unwrap_or_default()
    }

    /// Notes a failure that is answered with a retry; a cycle may end with it.
    pub(crate) fn note(&mut self, seen: Seen, ends_cycle: bool) {
        self.failures.push(seen);
        let surplus = self.failures.len().saturating_sub(MOST_FAILURES);
        self.failures.drain(..surplus);
        self.cycle_start =
            if ends_cycle { self.failures.len() } else { self.cycle_start.saturating_sub(surplus) };
    }

    /// The chain of retries as others see it: waiting until `next_at`, or being asked.
    pub(crate) fn state(&self, next_at: Option<Millis>) -> RetryState {
        let last = self.last.as_deref();
        RetryState {
            phase: if next_at.is_some() { RetryPhase::Waiting } else { RetryPhase::Asking },
            attempt: self.retries.saturating_sub(1),
            delay_ms: last.map_or(0, |last| last.delay_ms),
            next_at: next_at.map(|at| at.0),
            max_attempts: last.and_then(|last| last.max_attempts),
            category: last.map(|last| last.category),
            message: last.map(|last| last.message.clone()),
            code: last.and_then(|last| last.code.clone()),
            target: None,
            shared: last.filter(|last| last.shared).map(|_| true),
        }
    }
}
