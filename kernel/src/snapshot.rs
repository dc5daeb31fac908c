//! Snapshots: a separate, versioned form of a turn, so that the phases can change and old data still loads.

mod call;
mod hint;
mod ledger;
mod phase;
mod report;

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use everturn_wire::{QueuedMessage, TurnId, Usage};
use serde::{Deserialize, Serialize};

use crate::{Millis, Settings, Turn, call::OpenCall, hint::Hints, review::Breaker};
use hint::HintRecord;
use phase::{PhaseRecord, PieceRecord};
use report::ReportingRecord;

/// The latest version. Older ones are still read.
const VERSION: u32 = 4;

/// Version for a turn without a required report, without a summary in progress, and without calls for its caller.
/// Version 4 added all three.
const WITHOUT_REPORT: u32 = 3;

/// Version for a turn without checked calls. Version 3 added them.
const WITHOUT_CHECKS: u32 = 2;

/// Version for a turn without targets. Earlier versions of this program can continue such a turn, too.
const WITHOUT_TARGETS: u32 = 1;

/// The saved form of a turn. Serialize it with any serde format; golden files pin its JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    version: u32,
    id: TurnId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_of: Option<TurnId>,
    #[serde(default)]
    settings: Settings,
    phase: PhaseRecord,
    revision: u64,
    started_at: Millis,
    #[serde(default)]
    steps: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    target: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    is_chosen: bool,
    /// Absent if each was a step or was retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_calls: Option<u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    retries: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    waited_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_token_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_size: Option<u64>,
    #[serde(default)]
    recoveries: u32,
    /// The latest reviews, one bit each.
    #[serde(default, skip_serializing_if = "is_zero")]
    reviews: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hints: Vec<HintRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reporting: Option<Box<ReportingRecord>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withdrawn: Vec<PieceRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    queue: Vec<QueuedMessage>,
}

/// Used to omit fields added after the first format while they are zero.
fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

impl Snapshot {
    /// Returns the turn's id.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// Returns the queued user messages.
    pub fn queue(&self) -> &[QueuedMessage] {
        &self.queue
    }
}

/// Why a snapshot cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// It was written by a later version of this program.
    TooNew {
        /// Its version.
        found: u32,
        /// The latest version that can be read.
        known: u32,
    },
    /// It has a phase that its version does not have, so it is corrupt.
    UnknownPhase,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooNew { found, known } => write!(
                f,
                "the turn was saved in format {found} by a newer version of Everturn; this version reads formats up to {known}: upgrade Everturn"
            ),
            Self::UnknownPhase => f.write_str(
                "the saved turn is corrupt (its state does not exist in its format): restore its record from a backup",
            ),
        }
    }
}

impl core::error::Error for RestoreError {}

impl Turn {
    /// Returns the saved form of the turn.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            version: self.version(),
            id: self.id.clone(),
            retry_of: self.retry_of.clone(),
            settings: self.settings.clone(),
            phase: PhaseRecord::from(&self.phase),
            revision: self.revision,
            started_at: self.started_at,
            steps: self.steps,
            target: self.target,
            is_chosen: self.is_chosen,
            answer_calls: Some(self.answer_calls)
                .filter(|calls| *calls != self.steps.saturating_add(self.retries)),
            retries: self.retries,
            waited_ms: self.waited_ms,
            first_token_at: self.first_token_at,
            usage: self.usage,
            context_size: self.context_size,
            recoveries: self.recoveries,
            reviews: self.breaker.0,
            hints: self.hints.0.iter().cloned().map(Into::into).collect(),
            reporting: self.reporting.clone().map(Into::into),
            withdrawn: self.withdrawn.iter().cloned().map(Into::into).collect(),
            queue: self.queue.clone(),
        }
    }

    /// Returns the earliest version that can express the turn, so that an earlier program can continue it if possible.
    fn version(&self) -> u32 {
        let has_checks =
            self.breaker != Breaker::default() || self.calls().iter().any(|open| open.check.is_some());
        match has_checks {
            _ if self.is_summarizing() || self.must_report() => VERSION,
            true if self.calls().iter().any(OpenCall::is_of_caller) => VERSION,
            true => WITHOUT_REPORT,
            false if self.settings.targets.is_empty() => WITHOUT_TARGETS,
            false => WITHOUT_CHECKS,
        }
    }

    /// Restores a turn. Its first input must be [`crate::Input::Recover`].
    ///
    /// # Errors
    /// Returns an error if the snapshot has a later version than this program knows, or is corrupt.
    pub fn restore(snapshot: Snapshot) -> Result<Self, RestoreError> {
        if snapshot.version > VERSION {
            return Err(RestoreError::TooNew { found: snapshot.version, known: VERSION });
        }
        let target = snapshot.target;
        if !snapshot.phase.fits(&snapshot.settings, target) {
            return Err(RestoreError::UnknownPhase);
        }
        Ok(Self {
            id: snapshot.id,
            retry_of: snapshot.retry_of,
            settings: snapshot.settings,
            phase: snapshot
                .phase
                .into_phase(target, snapshot.reporting.is_some())
                .ok_or(RestoreError::UnknownPhase)?,
            revision: snapshot.revision,
            started_at: snapshot.started_at,
            steps: snapshot.steps,
            target,
            is_chosen: snapshot.is_chosen,
            answer_calls: snapshot.answer_calls.unwrap_or(snapshot.steps.saturating_add(snapshot.retries)),
            retries: snapshot.retries,
            waited_ms: snapshot.waited_ms,
            first_token_at: snapshot.first_token_at,
            usage: snapshot.usage,
            context_size: snapshot.context_size,
            recoveries: snapshot.recoveries,
            breaker: Breaker(snapshot.reviews),
            hints: Hints(snapshot.hints.into_iter().map(Into::into).collect()),
            reporting: snapshot.reporting.map(Into::into),
            withdrawn: snapshot.withdrawn.into_iter().map(Into::into).collect(),
            queue: snapshot.queue,
        })
    }
}
