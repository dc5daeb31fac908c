//! Final reports: what a turn that must report is asked for, and how its report is judged.

use std::{collections::BTreeMap, sync::Arc};

use everturn_kernel::{Arguments, Check, FINAL_REPORT, ReportRule, ToolCall, ToolSpec};
use everturn_wire::RequiredReport;

use crate::{Error, json, permission::Schemas};

/// The reports that turns must end with, as configured.
#[derive(Default)]
pub(crate) struct RequiredReports {
    /// Those on a route, by its id.
    pub(crate) routes: BTreeMap<String, Arc<RequiredReport>>,
    /// All others.
    pub(crate) rest: Option<Arc<RequiredReport>>,
}

impl RequiredReports {
    /// That of a turn with this model or route.
    pub(crate) fn of(&self, id: &str) -> Option<Arc<RequiredReport>> {
        self.routes.get(id).or(self.rest.as_ref()).cloned()
    }
}

/// What the model is told of the tool.
const DESCRIPTION: &str = "Gives your final report and ends the task. Call it once, by itself, when the task is done or cannot be done. \
    A reply without a tool call does not end the task.";

/// The last message of a request that offers nothing but the report.
pub(crate) const LAST_STEP: &str = "[This is the last step: no other tool is available any more. Call final_report now, with what \
    is known so far; say in it what is missing.]";

/// Checks what a turn is required to report.
///
/// # Errors
/// When the schema cannot be used, or the number of attempts.
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

/// The rule by which the machine runs a turn that must report.
pub(crate) fn rule(report: &RequiredReport) -> ReportRule {
    let usual = ReportRule::default();
    ReportRule { max_attempts: report.max_attempts.unwrap_or(usual.max_attempts) }
}

/// The tool by which a model reports.
pub(crate) fn spec(report: &RequiredReport) -> ToolSpec {
    let (name, description) = (FINAL_REPORT.to_owned(), DESCRIPTION.to_owned());
    ToolSpec { name, description, parameters: report.schema.clone() }
}

/// What holds for a call of that tool.
pub(crate) fn judge(report: &RequiredReport, schemas: &Schemas, call: &ToolCall) -> Check {
    let Arguments::Parsed(value) = &call.arguments else { return Check::Report(None) };
    Check::Report(schemas.validate(&spec(report), value).err())
}

/// The tools of a step: with the report, or the report alone.
pub(crate) fn offered(report: &RequiredReport, others: &[ToolSpec], is_last: bool) -> Arc<[ToolSpec]> {
    let others = if is_last { &[][..] } else { others };
    others.iter().filter(|spec| spec.name != FINAL_REPORT).cloned().chain([spec(report)]).collect()
}
