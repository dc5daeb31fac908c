//! The saved form of a ledger.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{Because, Category, CompactionCause};
use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::{
    Budget, Ledger, Millis, Settings,
    compaction::{Compacted, Summarizing},
    ledger::{Scheduled, Seen},
};

/// What happened in a step before its reply, if the turn must report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LedgerRecord {
    #[serde(skip_serializing_if = "is_zero")]
    retries: u32,
    #[serde(skip_serializing_if = "is_zero")]
    uncounted: u32,
    #[serde(skip_serializing_if = "is_zero")]
    waited_ms: u64,
    #[serde(flatten)]
    pub(super) route: RouteRecord,
}

/// The step's position on its route, and its waits for usage limits. Empty for most turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RouteRecord {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<SeenRecord>,
    #[serde(skip_serializing_if = "is_zero")]
    cycle_start: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    out: Vec<usize>,
    #[serde(skip_serializing_if = "is_zero")]
    walls: u32,
    #[serde(skip_serializing_if = "is_zero")]
    walled_ms: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unasked: u32,
    #[serde(skip_serializing_if = "is_zero")]
    faults: u32,
    #[serde(skip_serializing_if = "is_zero")]
    earlier: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summarizing: Option<Box<SummarizingRecord>>,
    #[serde(skip_serializing_if = "is_zero")]
    compacted: CompactedRecord,
}

/// A step whose history is being summarized, and the state to return to afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SummarizingRecord {
    cause: CompactionCause,
    target: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    is_chosen: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    out: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CompactedRecord {
    #[default]
    No,
    Ahead,
    Overflow,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeenRecord {
    at: Millis,
    target: usize,
    retries: u32,
    category: Category,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint_ms: Option<u64>,
}

/// The last scheduled retry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RetryRecord {
    delay_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    category: Category,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    shared: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    held: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    because: Option<Because>,
}

impl LedgerRecord {
    /// Returns the record; `None` if the step had no trouble.
    pub(super) fn of(ledger: &Ledger) -> Option<Box<Self>> {
        let Ledger { retries, uncounted, waited_ms, .. } = *ledger;
        let record = Self { retries, uncounted, waited_ms, route: RouteRecord::of(ledger) };
        (record != Self::default()).then(|| Box::new(record))
    }

    pub(super) fn into_ledger(self, target: usize) -> Ledger {
        let Self { retries, uncounted, waited_ms, route } = self;
        Ledger { retries, uncounted, waited_ms, ..ledger(target, None, route) }
    }
}

/// Returns the ledger of a step, without its counts, for the target with this index.
pub(super) fn ledger(target: usize, last: Option<Box<RetryRecord>>, route: RouteRecord) -> Ledger {
    let RouteRecord {
        failures,
        cycle_start,
        out,
        walls,
        walled_ms,
        unasked,
        faults,
        earlier,
        budget,
        summarizing,
        compacted,
    } = route;
    let failures = failures.into_iter().map(Into::into).collect();
    let last = last.map(Into::into);
    let summarizing = summarizing.map(|record| {
        let SummarizingRecord { cause, target, is_chosen, out } = *record;
        Box::new(Summarizing { cause, target, is_chosen, out })
    });
    let compacted = match compacted {
        CompactedRecord::No => Compacted::No,
        CompactedRecord::Ahead => Compacted::Ahead,
        CompactedRecord::Overflow => Compacted::Overflow,
    };
    Ledger {
        failures,
        cycle_start,
        out,
        walls,
        walled_ms,
        unasked,
        faults,
        earlier,
        budget,
        last,
        summarizing,
        compacted,
        ..Ledger::new(target)
    }
}

impl RouteRecord {
    pub(super) fn of(ledger: &Ledger) -> Self {
        Self {
            failures: ledger.failures.iter().copied().map(Into::into).collect(),
            cycle_start: ledger.cycle_start,
            out: ledger.out.clone(),
            walls: ledger.walls,
            walled_ms: ledger.walled_ms,
            unasked: ledger.unasked,
            faults: ledger.faults,
            earlier: ledger.earlier,
            budget: ledger.budget,
            summarizing: ledger.summarizing.as_deref().cloned().map(Into::into),
            compacted: match ledger.compacted {
                Compacted::No => CompactedRecord::No,
                Compacted::Ahead => CompactedRecord::Ahead,
                Compacted::Overflow => CompactedRecord::Overflow,
            },
        }
    }

    /// Whether all indexes refer to targets that the turn has.
    pub(super) fn fits(&self, settings: &Settings, targets: usize) -> bool {
        let own = settings.targets.len().max(1);
        let goes_back = self.summarizing.iter().flat_map(|back| back.out.iter().chain([&back.target]));
        if goes_back.copied().any(|at| at >= own) {
            return false;
        }
        self.failures.iter().map(|seen| seen.target).chain(self.out.iter().copied()).all(|at| at < targets)
    }
}

impl From<Summarizing> for Box<SummarizingRecord> {
    fn from(Summarizing { cause, target, is_chosen, out }: Summarizing) -> Self {
        Self::new(SummarizingRecord { cause, target, is_chosen, out })
    }
}

impl From<Seen> for SeenRecord {
    fn from(Seen { at, target, retries, category, hint_ms }: Seen) -> Self {
        Self { at, target, retries, category, hint_ms }
    }
}

impl From<SeenRecord> for Seen {
    fn from(SeenRecord { at, target, retries, category, hint_ms }: SeenRecord) -> Self {
        Self { at, target, retries, category, hint_ms }
    }
}

impl From<Box<Scheduled>> for Box<RetryRecord> {
    fn from(retry: Box<Scheduled>) -> Self {
        let Scheduled { delay_ms, max_attempts, category, message, code, shared, held, because } = *retry;
        Self::new(RetryRecord { delay_ms, max_attempts, category, message, code, shared, held, because })
    }
}

impl From<Box<RetryRecord>> for Box<Scheduled> {
    fn from(record: Box<RetryRecord>) -> Self {
        let RetryRecord { delay_ms, max_attempts, category, message, code, shared, held, because } = *record;
        Self::new(Scheduled { delay_ms, max_attempts, category, message, code, shared, held, because })
    }
}
