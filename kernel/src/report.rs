//! Final reports: what a turn must end with, where its settings say so.

use alloc::{boxed::Box, format, string::String};

use everturn_wire::{FinalReport, ForcedBy, Value};
use serde::{Deserialize, Serialize};

/// The name of the tool by which a model gives its final report. It is never run.
pub const FINAL_REPORT: &str = "final_report";

/// The default of [`ReportRule::max_attempts`].
const USUAL_ATTEMPTS: u32 = 3;

/// The maximum number of steps of a turn that must report, where its settings name none.
const USUAL_STEPS: u32 = 10;

/// A turn must end with a report of the model: a call of [`FINAL_REPORT`] that its host finds valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportRule {
    /// How many replies may come to nothing (no tool call and no report, empty, cut, or with a report that is rejected) before
    /// the turn ends without a report. 0 counts as 1.
    pub max_attempts: u32,
}

impl Default for ReportRule {
    fn default() -> Self {
        Self { max_attempts: USUAL_ATTEMPTS }
    }
}

/// How far a turn is that must report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reporting {
    /// The replies that came to nothing.
    pub(crate) failed: u32,
    /// Why the last one did.
    pub(crate) last: String,
    /// The steps that do not count: each followed a reply that came to nothing.
    pub(crate) uncounted: u32,
    /// The maximum number of counted steps, once an attempt to report lowered it.
    pub(crate) limit: Option<u32>,
    /// Why nothing but the report is on offer, apart from the number of steps.
    pub(crate) forced: Option<ForcedBy>,
    /// A valid report, which a better one may replace.
    pub(crate) kept: Option<Value>,
}

impl Reporting {
    /// The maximum number of steps, those that do not count included.
    pub(crate) fn max_steps(&self, max_steps: Option<u32>) -> u32 {
        let limit = self.limit.unwrap_or(max_steps.unwrap_or(USUAL_STEPS).max(1));
        limit.saturating_add(self.uncounted)
    }

    /// An attempt to report leaves one more step after this one, once. Returns the old and the new maximum of steps.
    pub(crate) fn collapse(&mut self, step: u32, max_steps: Option<u32>) -> Option<(u32, u32)> {
        let old = self.max_steps(max_steps);
        let new = step.saturating_add(2);
        if self.limit.is_some() || new >= old {
            return None;
        }
        self.limit = Some(new.saturating_sub(self.uncounted));
        Some((old, new))
    }

    /// The report of a turn that ends now. `why`: where there is none.
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
