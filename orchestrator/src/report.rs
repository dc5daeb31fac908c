//! Final reports: what a turn is required to report, and how its report is checked.

use std::{collections::BTreeMap, sync::Arc};

use everturn_kernel::{Arguments, Check, FINAL_REPORT, ReportRule, ToolCall, ToolSpec};
use everturn_wire::RequiredReport;

use crate::{Error, json, permission::Schemas};

/// The reports that turns must end with, as configured.
#[derive(Default)]
pub(crate) struct RequiredReports {
    /// Reports required on a route, by route id.
    pub(crate) routes: BTreeMap<String, Arc<RequiredReport>>,
    /// The report required on everything else.
    pub(crate) rest: Option<Arc<RequiredReport>>,
}

impl RequiredReports {
    /// Returns the report required of a turn with this model or route.
    pub(crate) fn of(&self, id: &str) -> Option<Arc<RequiredReport>> {
        self.routes.get(id).or(self.rest.as_ref()).cloned()
    }
}

/// The tool's description for the model.
const DESCRIPTION: &str = "Gives your final report and ends the task. Call it once, by itself, when the task is done or cannot be done. \
    A reply without a tool call does not end the task.";

/// The last message of a request that offers only `final_report`.
pub(crate) const LAST_STEP: &str = "[This is the last step: no other tool is available any more. Call final_report now, with what \
    is known so far; say in it what is missing.]";

/// Validates a required report.
///
/// # Errors
/// When the schema or the number of attempts is invalid.
pub fn check(report: &RequiredReport) -> Result<(), Error> {
    let bad = |why: String| Err(Error::BadReport { why });
    if !report.schema.is_object() {
        return bad("its schema must be a JSON object".to_owned());
    }
    let (bytes, most) = (json::size(&report.schema), RequiredReport::MAX_SCHEMA);
    if bytes > most {
        return bad(format!("its schema has {bytes} bytes, the limit is {most}"));
    }
    let most = RequiredReport::MAX_ATTEMPTS;
    if report.max_attempts.is_some_and(|attempts| !(1..=most).contains(&attempts)) {
        return bad(format!("maxAttempts must be 1 to {most}"));
    }
    Schemas::check(&report.schema).or_else(|why| bad(format!("its schema cannot be used: {why}")))
}

/// Returns the kernel's rule for a turn that must report.
pub(crate) fn rule(report: &RequiredReport) -> ReportRule {
    let usual = ReportRule::default();
    ReportRule { max_attempts: report.max_attempts.unwrap_or(usual.max_attempts) }
}

/// Returns the tool with which a model reports.
pub(crate) fn spec(report: &RequiredReport) -> ToolSpec {
    let (name, description) = (FINAL_REPORT.to_owned(), DESCRIPTION.to_owned());
    ToolSpec { name, description, parameters: report.schema.clone() }
}

/// Checks a call of `final_report`.
pub(crate) fn judge(report: &RequiredReport, schemas: &Schemas, call: &ToolCall) -> Check {
    let Arguments::Parsed(value) = &call.arguments else { return Check::Report(None) };
    Check::Report(schemas.validate(&spec(report), value).err())
}

/// Returns the tools offered in a step: all of them and `final_report`, or in a forced step only `final_report`.
pub(crate) fn offered(report: &RequiredReport, others: &[ToolSpec], is_last: bool) -> Arc<[ToolSpec]> {
    let others = if is_last { &[][..] } else { others };
    others.iter().filter(|spec| spec.name != FINAL_REPORT).cloned().chain([spec(report)]).collect()
}
