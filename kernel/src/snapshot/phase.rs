//! The saved form of a phase.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{Category, CompactionCause, DoneReason, Echo, Failure, FinalReport, Usage};
use serde::{Deserialize, Serialize};

use super::{call::CallRecord, is_zero};
use crate::{
    Ledger, Millis, Op, Outcome, Settings,
    compaction::{Compacted, Summarizing},
    ledger::{Scheduled, Seen},
    phase::{Backoff, Phase, Piece, Streaming, Tools},
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum PhaseRecord {
    Streaming {
        op: Op,
        retries: u32,
        #[serde(default, skip_serializing_if = "is_zero")]
        uncounted: u32,
        waited_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_retry: Option<Box<RetryRecord>>,
        #[serde(flatten)]
        route: RouteRecord,
        since: Millis,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_token_at: Option<Millis>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pieces: Vec<PieceRecord>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<CallRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(default, skip_serializing_if = "is_zero")]
        is_silent: bool,
        #[serde(default, skip_serializing_if = "is_zero")]
        by_person: bool,
    },
    Backoff {
        op: Op,
        retries: u32,
        #[serde(default, skip_serializing_if = "is_zero")]
        uncounted: u32,
        waited_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_retry: Option<Box<RetryRecord>>,
        #[serde(flatten)]
        route: RouteRecord,
        resume_at: Millis,
        decided_ms: u64,
        #[serde(default, skip_serializing_if = "is_zero")]
        held: bool,
    },
    Tools {
        step: u32,
        calls: Vec<CallRecord>,
    },
    Sealed {
        reason: DoneReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<FinalReport>>,
    },
    /// A phase of a later format, accepted so that the error can name its version.
    #[serde(other)]
    Unknown,
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
    faults: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    summarizing: Option<Box<SummarizingRecord>>,
    #[serde(skip_serializing_if = "is_zero")]
    compacted: CompactedRecord,
}

/// A step whose history is being summarized, and the state to return to afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummarizingRecord {
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
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum PieceRecord {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Echo>,
    },
}

impl From<&Phase> for PhaseRecord {
    fn from(phase: &Phase) -> Self {
        match phase.clone() {
            Phase::Streaming(streaming) => {
                let Streaming {
                    op,
                    ledger,
                    since,
                    first_token_at,
                    pieces,
                    calls,
                    // A call that is yet to come is streamed again.
                    places: _,
                    usage,
                    is_silent,
                    by_person,
                } = streaming;
                Self::Streaming {
                    op,
                    retries: ledger.retries,
                    uncounted: ledger.uncounted,
                    waited_ms: ledger.waited_ms,
                    route: RouteRecord::of(&ledger),
                    last_retry: ledger.last.map(Into::into),
                    since,
                    first_token_at,
                    pieces: pieces.into_iter().map(Into::into).collect(),
                    calls: calls.into_iter().map(Into::into).collect(),
                    usage,
                    is_silent,
                    by_person,
                }
            }
            Phase::Backoff(Backoff { op, ledger, resume_at, decided_ms, held }) => Self::Backoff {
                op,
                retries: ledger.retries,
                uncounted: ledger.uncounted,
                waited_ms: ledger.waited_ms,
                route: RouteRecord::of(&ledger),
                last_retry: ledger.last.map(Into::into),
                resume_at,
                decided_ms,
                held,
            },
            Phase::Tools(Tools { step, calls }) => {
                Self::Tools { step, calls: calls.into_iter().map(Into::into).collect() }
            }
            Phase::Sealed(Outcome { reason, failure, report }) => Self::Sealed { reason, failure, report },
        }
    }
}

/// Returns the ledger of a step, without its counts, for the target with this index.
fn ledger(target: usize, last: Option<Box<RetryRecord>>, route: RouteRecord) -> Ledger {
    let RouteRecord { failures, cycle_start, out, walls, walled_ms, faults, summarizing, compacted } = route;
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
        faults,
        last,
        summarizing,
        compacted,
        ..Ledger::new(target)
    }
}

impl RouteRecord {
    fn of(ledger: &Ledger) -> Self {
        Self {
            failures: ledger.failures.iter().copied().map(Into::into).collect(),
            cycle_start: ledger.cycle_start,
            out: ledger.out.clone(),
            walls: ledger.walls,
            walled_ms: ledger.walled_ms,
            faults: ledger.faults,
            summarizing: ledger.summarizing.as_deref().cloned().map(Into::into),
            compacted: match ledger.compacted {
                Compacted::No => CompactedRecord::No,
                Compacted::Ahead => CompactedRecord::Ahead,
                Compacted::Overflow => CompactedRecord::Overflow,
            },
        }
    }

    /// Whether all indexes refer to targets that the turn has.
    fn fits(&self, settings: &Settings, targets: usize) -> bool {
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

impl PhaseRecord {
    /// Whether all indexes refer to targets that the turn has.
    pub(super) fn fits(&self, settings: &Settings, target: usize) -> bool {
        let (Self::Streaming { route, .. } | Self::Backoff { route, .. }) = self else {
            return target < settings.targets.len().max(1);
        };
        let others = settings.compaction.as_ref().map(|compaction| &compaction.targets);
        let others = others.filter(|others| route.summarizing.is_some() && !others.is_empty());
        let targets = others.unwrap_or(&settings.targets).len().max(1);
        target < targets && route.fits(settings, targets)
    }

    /// Returns the phase of a turn that asks the target with this index; `None` if it is of a later format.
    pub(super) fn into_phase(self, target: usize) -> Option<Phase> {
        Some(match self {
            Self::Streaming {
                op,
                retries,
                uncounted,
                waited_ms,
                last_retry,
                route,
                since,
                first_token_at,
                pieces,
                calls,
                usage,
                is_silent,
                by_person,
            } => {
                let ledger = Ledger { retries, uncounted, waited_ms, ..ledger(target, last_retry, route) };
                Phase::Streaming(Streaming {
                    first_token_at,
                    pieces: pieces.into_iter().map(Into::into).collect(),
                    calls: calls.into_iter().map(Into::into).collect(),
                    usage,
                    is_silent,
                    by_person,
                    ..Streaming::new(op, ledger, since)
                })
            }
            Self::Backoff {
                op,
                retries,
                uncounted,
                waited_ms,
                last_retry,
                route,
                resume_at,
                decided_ms,
                held,
            } => {
                let ledger = Ledger { retries, uncounted, waited_ms, ..ledger(target, last_retry, route) };
                Phase::Backoff(Backoff { op, ledger, resume_at, decided_ms, held })
            }
            Self::Tools { step, calls } => {
                Phase::Tools(Tools { step, calls: calls.into_iter().map(Into::into).collect() })
            }
            Self::Sealed { reason, failure, report } => Phase::Sealed(Outcome { reason, failure, report }),
            Self::Unknown => return None,
        })
    }
}

impl From<Box<Scheduled>> for Box<RetryRecord> {
    fn from(retry: Box<Scheduled>) -> Self {
        let Scheduled { delay_ms, max_attempts, category, message, code, shared } = *retry;
        Self::new(RetryRecord { delay_ms, max_attempts, category, message, code, shared })
    }
}

impl From<Box<RetryRecord>> for Box<Scheduled> {
    fn from(record: Box<RetryRecord>) -> Self {
        let RetryRecord { delay_ms, max_attempts, category, message, code, shared } = *record;
        Self::new(Scheduled { delay_ms, max_attempts, category, message, code, shared })
    }
}

impl From<Piece> for PieceRecord {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Text(text) => Self::Text { text },
            Piece::Thinking { text, echo } => Self::Thinking { thinking: text, echo },
        }
    }
}

impl From<PieceRecord> for Piece {
    fn from(record: PieceRecord) -> Self {
        match record {
            PieceRecord::Text { text } => Self::Text(text),
            PieceRecord::Thinking { thinking, echo } => Self::Thinking { text: thinking, echo },
        }
    }
}
