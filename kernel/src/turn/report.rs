//! A turn that must end with a report. Guidance follows replies without one; in the end, only the report is on offer.

use alloc::boxed::Box;

use everturn_wire::{DoneReason, EventBody, Failure, FinalReport, ForcedBy};

use super::{Turn, reply::NO_REPORT};
use crate::{
    Arguments, Check, Checked, Effects, GiveUp, Millis, Schedule, ToolCall, call::OpenCall, phase::Phase,
    report::FINAL_REPORT,
};

/// Result for the model of any other call in a step that allows only the report.
const REPORT_ONLY: &str = "(tool failed: not run, only final_report may be called now)";
const REJECTED: &str = "the final report was rejected";
/// Why a reply failed that has only calls whose arguments are malformed.
const MALFORMED: &str = "the arguments of the tool calls are not valid JSON";

impl Turn {
    /// Whether the turn must end with a report, so that [`FINAL_REPORT`] is offered beside the other tools.
    pub fn must_report(&self) -> bool {
        self.reporting.is_some()
    }

    /// Whether only [`FINAL_REPORT`] may be offered in this step.
    pub fn must_report_now(&self) -> bool {
        self.step().is_some_and(|step| self.is_last_step(step))
    }

    /// Whether this step is the last one, in which only [`FINAL_REPORT`] is offered.
    pub(super) fn is_last_step(&self, step: u32) -> bool {
        let Some(reporting) = &self.reporting else { return false };
        reporting.forced.is_some() || step.saturating_add(1) >= reporting.max_steps(self.settings.max_steps)
    }

    /// Whether the history must be reduced to what the report needs, because it does not fit the model's context.
    pub fn is_cut_down(&self) -> bool {
        self.reporting.as_ref().is_some_and(|reporting| reporting.forced == Some(ForcedBy::Overflow))
    }

    /// Returns the check of a call with the report rules applied: reports never run, and nothing else runs in the last
    /// step.
    pub(super) fn check_of(&self, call: &ToolCall, checked: Checked) -> Checked {
        match self.must_report() {
            true if call.name == FINAL_REPORT => {
                Checked { check: checked.check.or(Some(Check::Report(None))), decision: None }
            }
            true if self.must_report_now() => Check::Refused(REPORT_ONLY.into()).into(),
            _ => checked,
        }
    }

    /// Handles a step whose calls all have results.
    pub(super) fn on_results(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Tools(tools) = &self.phase else { return };
        let next = tools.step.saturating_add(1);
        let is_report = |open: &&OpenCall| open.call.name == FINAL_REPORT;
        let is_error = |open: &OpenCall| open.answer().is_some_and(|answer| answer.is_error);
        let is_malformed = |open: &OpenCall| matches!(open.call.arguments, Arguments::Malformed { .. });
        let reported = tools.calls.iter().any(|open| is_report(&open));
        let others_failed = tools.calls.iter().filter(|open| !is_report(open)).any(is_error);
        let all_malformed = tools.calls.iter().all(is_malformed);
        let is_last = self.must_report_now();
        if !reported && !is_last {
            return match all_malformed {
                true => self.guide_by_results(now, MALFORMED, schedule, fx),
                false => self.next_step(now, next, schedule, fx),
            };
        }
        let is_valid = self.keep_report();
        if is_valid && (!others_failed || is_last) {
            return self.seal(now, DoneReason::Stop, None, fx);
        }
        if reported {
            self.collapse(fx);
        }
        match (reported, is_valid) {
            (_, true) => self.next_step(now, next, schedule, fx),
            (true, false) => self.guide_by_results(now, REJECTED, schedule, fx),
            (false, false) => self.guide_by_results(now, NO_REPORT, schedule, fx),
        }
    }

    /// Keeps a valid report if the answered calls contain one. Returns whether they do.
    pub(super) fn keep_report(&mut self) -> bool {
        let Phase::Tools(tools) = &self.phase else { return false };
        let valid = tools.calls.iter().rev().find_map(|open| match &open.call.arguments {
            Arguments::Parsed(value) if open.call.name == FINAL_REPORT => {
                open.answer().filter(|answer| !answer.is_error).map(|_| value.clone())
            }
            _ => None,
        });
        let (Some(reporting), Some(valid)) = (&mut self.reporting, valid) else { return false };
        reporting.kept = Some(valid);
        true
    }

    /// Handles a step that cannot be completed: asks for the report alone if that may help, else ends the turn with a
    /// kept report or the failure.
    pub(super) fn give_up(
        &mut self,
        now: Millis,
        failure: Failure,
        given_up: GiveUp,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        if let Some(last_step) = self.last_step(now, &failure, &given_up, schedule) {
            return self.begin_last_step(now, last_step, failure, &given_up, fx);
        }
        if self.reporting.as_ref().is_some_and(|reporting| reporting.kept.is_some()) {
            self.leave(now, given_up.outcome, Some(&failure.message), fx);
            return self.seal(now, DoneReason::Stop, None, fx);
        }
        self.fail(now, failure, given_up, fx);
    }

    /// Leaves one more step after an attempt to report or a reply that was cut off.
    pub(super) fn collapse(&mut self, fx: &mut Effects) {
        let (Some(step), max_steps) = (self.step(), self.settings.max_steps) else { return };
        let Some(reporting) = &mut self.reporting else { return };
        if let Some((from, to)) = reporting.collapse(step, max_steps) {
            fx.tell(EventBody::StepsCollapsed { step_id: self.step_id(step), from, to });
        }
    }

    /// Publishes that the next step is for the report alone, if it is.
    pub(super) fn tell_last_step(&self, step: u32, fx: &mut Effects) {
        let is_forced = self.reporting.as_ref().is_some_and(|reporting| reporting.forced.is_some());
        if self.must_report_now() && !is_forced {
            fx.tell(EventBody::ReportForced { step_id: self.step_id(step), by: ForcedBy::MaxSteps });
        }
    }

    /// Publishes the report of a turn that ends now, if one was required.
    pub(super) fn tell_report(
        &self,
        reason: &DoneReason,
        failure: Option<&Failure>,
        fx: &mut Effects,
    ) -> Option<Box<FinalReport>> {
        let reporting = self.reporting.as_ref()?;
        let aborted = (*reason == DoneReason::Aborted).then_some("the turn was stopped");
        let why = failure.map(|failure| failure.message.as_str()).or(aborted);
        let report = reporting.end(why, self.steps, self.retries);
        fx.tell(EventBody::FinalReport(report.clone()));
        Some(report)
    }
}
