//! Final reports: what a turn must end with if its settings require one.

use alloc::{boxed::Box, format, string::String};

use everturn_wire::{FinalReport, ForcedBy, Value};
use serde::{Deserialize, Serialize};

/// The name of the tool with which a model submits its final report. It is never run.
pub const FINAL_REPORT: &str = "final_report";

/// The default of [`ReportRule::max_attempts`].
const USUAL_ATTEMPTS: u32 = 3;

/// Default maximum number of steps of a turn that must report.
const USUAL_STEPS: u32 = 10;

/// The rule that a turn must end with a report by the model: a call of [`FINAL_REPORT`] that its host finds valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportRule {
    /// Maximum number of failed replies of a step. A reply fails if it has no tool call and no report, is empty or cut
    /// off, has a report that is rejected, or only calls with malformed arguments. Then a last step follows in which only
    /// the report is on offer; after as many failed replies there, the turn ends without a report. 0 counts as 1.
    pub max_attempts: u32,
}

impl Default for ReportRule {
    fn default() -> Self {
        Self { max_attempts: USUAL_ATTEMPTS }
    }
}

/// What follows a failed reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterReply {
    /// The step goes on with another call.
    Again,
    /// A last step, for the report alone.
    LastStep,
    /// The end of the turn.
    End,
}

/// Progress of a turn that must report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reporting {
    /// Number of failed replies.
    pub(crate) failed: u32,
    /// Number of failed replies of the current step, which goes on after each of them.
    pub(crate) failed_in_step: u32,
    /// Why the last reply failed.
    pub(crate) last: String,
    /// Number of steps that do not count. Each followed a failed reply.
    pub(crate) uncounted: u32,
    /// Maximum number of counted steps, if an attempt to report has lowered it.
    pub(crate) limit: Option<u32>,
    /// Why only the report is on offer, other than the number of steps.
    pub(crate) forced: Option<ForcedBy>,
    /// A valid report. A better one may replace it.
    pub(crate) kept: Option<Value>,
}

impl Reporting {
    /// Returns the maximum number of steps, including those that do not count.
    pub(crate) fn max_steps(&self, max_steps: Option<u32>) -> u32 {
        let limit = self.limit.unwrap_or(max_steps.unwrap_or(USUAL_STEPS).max(1));
        limit.saturating_add(self.uncounted)
    }

    /// Counts a failed reply. `calls_left`: whether the step may make another call. Returns what follows.
    pub(crate) fn fail(&mut self, why: &str, max: u32, calls_left: bool, is_last_step: bool) -> AfterReply {
        self.failed = self.failed.saturating_add(1);
        self.failed_in_step = self.failed_in_step.saturating_add(1);
        self.last = why.into();
        if calls_left && self.failed_in_step < max {
            self.uncounted = self.uncounted.saturating_add(1);
            return AfterReply::Again;
        }
        if is_last_step || self.kept.is_some() { AfterReply::End } else { AfterReply::LastStep }
    }

    /// Leaves one more step after an attempt to report. Applies once. Returns the old and the new maximum of steps.
    pub(crate) fn collapse(&mut self, step: u32, max_steps: Option<u32>) -> Option<(u32, u32)> {
        let old = self.max_steps(max_steps);
        let new = step.saturating_add(2);
        if self.limit.is_some() || new >= old {
            return None;
        }
        self.limit = Some(new.saturating_sub(self.uncounted));
        Some((old, new))
    }

    /// Returns the report of a turn that ends now. `why` is the reason if there is no report.
    pub(crate) fn end(&self, why: Option<&str>, steps: u32, retries: u32) -> Box<FinalReport> {
        Box::new(match &self.kept {
            Some(report) => {
                FinalReport { success: true, report: Some(report.clone()), reason: None, context: None }
            }
            None => {
                let failed = self.failed;
                let context = format!(
                    "{steps} steps, {retries} retries, {failed} replies without an acceptable report"
                );
                let reason = Some(why.unwrap_or("the turn ended before the model gave its report").into());
                FinalReport { success: false, report: None, reason, context: Some(context) }
            }
        })
    }
}
