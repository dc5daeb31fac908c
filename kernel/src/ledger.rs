//! The ledger of a step: its failures and retries so far, as input for schedules.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{Because, Category, Failure, RetryPhase, RetryState};

use crate::{
    Budget, Millis,
    compaction::{Compacted, Summarizing},
};

/// Maximum number of failures kept, so that a schedule that never gives up does not make its turn grow.
const MOST_FAILURES: usize = 64;

/// What has happened in a step so far. Reset for each step; saved with its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledger {
    /// Number of retries scheduled so far, including switches. Also the 0-based number of the next retry.
    pub retries: u32,
    /// Number of retries that do not count against the schedule's maximum: a person requested them while the provider
    /// was silent, or the schedule exempted them ([`crate::Ask::uncounted`]).
    pub uncounted: u32,
    /// Number of retries before which nobody was asked, because others were refused or come first. They are not reported as
    /// retries.
    pub(crate) unasked: u32,
    /// Number of counted calls before the last failed reply. Only for a turn that must report: there, a failed reply is
    /// followed by another call of the same step, and its retries are counted from zero.
    pub earlier: u32,
    /// Sum of the waits in milliseconds, without those not charged to the budget: for usage limits and for the network.
    pub waited_ms: u64,
    /// How often the step waited for a limit beyond its budget ([`crate::Ask::is_wall`]).
    pub walls: u32,
    /// Sum of these waits, in milliseconds.
    pub walled_ms: u64,
    /// Number of internal failures, such as a panic of a provider, that were answered with a retry.
    pub faults: u32,
    /// The target that is being asked, as an index into the turn's targets.
    pub target: usize,
    /// Failures of the step that were answered with a retry, oldest first; at most the last 64. They begin with earlier
    /// failures whose hints had not expired. Empty if the turn has no named targets.
    pub failures: Vec<Seen>,
    /// Number of failures that belong to completed cycles.
    pub cycle_start: usize,
    /// Targets that are not asked again in this step, as indexes.
    pub out: Vec<usize>,
    /// The last scheduled retry, as it was published. Boxed because most calls have none.
    pub(crate) last: Option<Box<Scheduled>>,
    /// Set while the step's calls are for a summary of the older history instead of the answer. Boxed because most
    /// steps make none.
    pub(crate) summarizing: Option<Box<Summarizing>>,
    pub(crate) compacted: Compacted,
    /// Bounds the waits of a forced step whose budget was spent, instead of that of the settings.
    pub(crate) budget: Option<Budget>,
}

/// A failure that was answered with a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The time of the failure.
    pub at: Millis,
    /// The target that failed, as an index.
    pub target: usize,
    /// Number of counted retries before it.
    pub retries: u32,
    /// The kind of failure.
    pub category: Category,
    /// The wait that the provider asked for, in milliseconds.
    pub hint_ms: Option<u64>,
}

/// A scheduled retry, kept for display while the series of retries lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// The decided length of the wait, in milliseconds.
    pub(crate) delay_ms: u64,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) category: Category,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
    /// Whether no call was made, because others were refused or come first.
    pub(crate) shared: bool,
    /// Whether the call was put off, so that no retry was used up.
    pub(crate) held: bool,
    pub(crate) because: Option<Because>,
}

impl Seen {
    /// Creates a record of a failure of the target that the ledger names.
    pub fn new(now: Millis, ledger: &Ledger, failure: &Failure) -> Self {
        Self {
            at: now,
            target: ledger.target,
            retries: ledger.counted(),
            category: failure.category,
            hint_ms: failure.hint_ms,
        }
    }

    /// Returns when the provider's hint expires.
    pub fn hint_ends(&self) -> Millis {
        self.at.plus(self.hint_ms.unwrap_or(0))
    }
}

impl Ledger {
    /// Creates the ledger of a step that begins with this target.
    pub fn new(target: usize) -> Self {
        Self { target, ..Self::default() }
    }

    /// Creates the ledger of a series of calls that begins with this target, and with unexpired hints.
    pub(crate) fn knowing(target: usize, hinted: Vec<Seen>) -> Self {
        Self { cycle_start: hinted.len(), failures: hinted, ..Self::new(target) }
    }

    /// Returns the ledger for the next series of calls of the same step. Retries are counted from zero, waits stay
    /// charged, and excluded targets stay excluded.
    pub(crate) fn next_series(&self, target: usize, hinted: Vec<Seen>) -> Self {
        Self {
            waited_ms: self.waited_ms,
            walls: self.walls,
            walled_ms: self.walled_ms,
            faults: self.faults,
            out: self.out.clone(),
            compacted: self.compacted,
            budget: self.budget,
            ..Self::knowing(target, hinted)
        }
    }

    /// Returns the ledger for the call after a failed reply. It goes on where it is on its route. Retries are counted
    /// from zero, but the calls stay counted.
    pub(crate) fn after_reply(self) -> Self {
        Self {
            earlier: self.calls(),
            retries: 0,
            uncounted: 0,
            unasked: 0,
            last: None,
            summarizing: None,
            compacted: Compacted::No,
            ..self
        }
    }

    /// Returns the number of counted calls of the step, with the one that is being made.
    pub(crate) fn calls(&self) -> u32 {
        self.counted().saturating_add(self.earlier).saturating_add(1)
    }

    /// Returns the number of retries that follow a call, as they are reported.
    pub(crate) fn made(&self) -> u32 {
        self.retries.saturating_sub(self.unasked)
    }

    /// Returns the number of retries that count against the schedule's maximum.
    pub fn counted(&self) -> u32 {
        self.retries.saturating_sub(self.uncounted)
    }

    /// Returns the failures of the current cycle: since the step began, or since a schedule last ended a cycle.
    pub fn cycle(&self) -> &[Seen] {
        self.failures.get(self.cycle_start..).unwrap_or_default()
    }

    /// Records a failure that is answered with a retry and may end a cycle.
    pub(crate) fn note(&mut self, seen: Seen, ends_cycle: bool) {
        self.failures.push(seen);
        let surplus = self.failures.len().saturating_sub(MOST_FAILURES);
        self.failures.drain(..surplus);
        self.cycle_start =
            if ends_cycle { self.failures.len() } else { self.cycle_start.saturating_sub(surplus) };
    }

    /// Returns the series of retries as clients see it: waiting until `next_at`, or calling.
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
            because: last.and_then(|last| last.because),
        }
    }
}
