//! The saved form of a phase.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{DoneReason, Echo, Failure, FinalReport, Usage};
use serde::{Deserialize, Serialize};

use super::{
    call::CallRecord,
    is_zero,
    ledger::{LedgerRecord, RetryRecord, RouteRecord, ledger},
};
use crate::{
    Ledger, Millis, Op, Outcome, Settings,
    phase::{Backoff, Charge, Phase, Piece, Streaming, Tools},
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
        #[serde(default, skip_serializing_if = "is_zero")]
        charge: Charge,
    },
    Tools {
        step: u32,
        calls: Vec<CallRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ledger: Option<Box<LedgerRecord>>,
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
                    reported: _,
                    is_over: _,
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
            Phase::Backoff(Backoff { op, ledger, resume_at, decided_ms, held, charge }) => Self::Backoff {
                op,
                retries: ledger.retries,
                uncounted: ledger.uncounted,
                waited_ms: ledger.waited_ms,
                route: RouteRecord::of(&ledger),
                last_retry: ledger.last.map(Into::into),
                resume_at,
                decided_ms,
                held,
                charge,
            },
            Phase::Tools(Tools { step, calls, ledger }) => Self::Tools {
                step,
                calls: calls.into_iter().map(Into::into).collect(),
                ledger: ledger.and_then(|ledger| LedgerRecord::of(&ledger)),
            },
            Phase::Sealed(Outcome { reason, failure, report }) => Self::Sealed { reason, failure, report },
        }
    }
}

impl PhaseRecord {
    /// Whether all indexes refer to targets that the turn has.
    pub(super) fn fits(&self, settings: &Settings, target: usize) -> bool {
        let route = match self {
            Self::Streaming { route, .. } | Self::Backoff { route, .. } => route,
            Self::Tools { ledger: Some(ledger), .. } => &ledger.route,
            _ => return target < settings.targets.len().max(1),
        };
        let others = settings.compaction.as_ref().map(|compaction| &compaction.targets);
        let others = others.filter(|others| route.summarizing.is_some() && !others.is_empty());
        let targets = others.unwrap_or(&settings.targets).len().max(1);
        target < targets && route.fits(settings, targets)
    }

    /// Returns the phase of a turn that asks the target with this index; `None` if it is of a later format.
    pub(super) fn into_phase(self, target: usize, must_report: bool) -> Option<Phase> {
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
                charge,
            } => {
                let ledger = Ledger { retries, uncounted, waited_ms, ..ledger(target, last_retry, route) };
                Phase::Backoff(Backoff { op, ledger, resume_at, decided_ms, held, charge })
            }
            Self::Tools { step, calls, ledger } => Phase::Tools(Tools {
                step,
                calls: calls.into_iter().map(Into::into).collect(),
                ledger: must_report.then(|| Box::new(ledger.unwrap_or_default().into_ledger(target))),
            }),
            Self::Sealed { reason, failure, report } => Phase::Sealed(Outcome { reason, failure, report }),
            Self::Unknown => return None,
        })
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
