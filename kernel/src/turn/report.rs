//! A turn that must end with a report. Guidance follows replies without one; in the end, only the report is on offer.

use alloc::{boxed::Box, format};

use everturn_wire::{
    Category, Chunk, CompactionOutcome, DoneReason, EventBody, Failure, FinalReport, ForcedBy, RetryOutcome,
    Role,
};

use super::Turn;
use crate::{
    Arguments, Check, Checked, Effects, GiveUp, Millis, Schedule, ToolCall,
    call::OpenCall,
    phase::{Phase, Streaming},
    report::FINAL_REPORT,
};

/// Result for the model of any other call in a step that allows only the report.
const REPORT_ONLY: &str = "(tool failed: not run, only final_report may be called now)";
/// Why a reply without a report failed.
const NO_REPORT: &str =
    "the reply has neither a tool call nor a final report: call a tool, or final_report when you are done";
pub(super) const EMPTY: &str = "the reply was empty";
const REJECTED: &str = "the final report was rejected";

impl Turn {
    /// Whether the turn must end with a report, so that [`FINAL_REPORT`] is offered beside the other tools.
    pub fn must_report(&self) -> bool {
        self.reporting.is_some()
    }

    /// Whether only [`FINAL_REPORT`] may be offered in this step.
    pub fn must_report_now(&self) -> bool {
        let (Some(reporting), Some(step)) = (&self.reporting, self.step()) else { return false };
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

    /// Handles a failed reply: tells the model why, and asks again in a step that does not count.
    pub(super) fn guide(&mut self, now: Millis, reasons: &[&str], schedule: &dyn Schedule, fx: &mut Effects) {
        let why = reasons[..reasons.len().min(2)].join(" | ");
        let Some(step) = self.step() else { return };
        let Some((attempt, max_attempts)) = self.fail_attempt(now, &why, true, fx) else { return };
        fx.keep(Role::System, Chunk::System { text: format!("TURN-FAILED: {why}"), keeps_from: None });
        let step_id = self.step_id(step);
        fx.tell(EventBody::ReportMissing { step_id, reason: why, attempt, max_attempts });
        self.next_step(now, step.saturating_add(1), schedule, fx);
    }

    /// Counts a failed reply, and possibly marks the next step as not counting. Returns the number of failed replies
    /// and their maximum; `None` if that was the last, and the turn has ended.
    fn fail_attempt(
        &mut self,
        now: Millis,
        why: &str,
        adds_step: bool,
        fx: &mut Effects,
    ) -> Option<(u32, u32)> {
        let max = self.settings.final_report.unwrap_or_default().max_attempts.max(1);
        let reporting = self.reporting.as_mut()?;
        reporting.failed = reporting.failed.saturating_add(1);
        reporting.last = why.into();
        if reporting.failed >= max {
            self.end_without_report(now, fx);
            return None;
        }
        reporting.uncounted = reporting.uncounted.saturating_add(adds_step.into());
        Some((reporting.failed, max))
    }

    /// Handles the end of a reply without a tool call.
    pub(super) fn on_no_call(
        &mut self,
        now: Millis,
        reason: &DoneReason,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        if let Some(cut) = cut_short(reason) {
            self.collapse(fx);
            return self.guide(now, &[cut, NO_REPORT], schedule, fx);
        }
        self.guide(now, &[NO_REPORT], schedule, fx);
    }

    /// Handles a step whose calls all have results.
    pub(super) fn on_results(&mut self, now: Millis, step: u32, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Tools(tools) = &self.phase else { return };
        let is_report = |open: &&OpenCall| open.call.name == FINAL_REPORT;
        let is_error = |open: &OpenCall| open.answer().is_some_and(|answer| answer.is_error);
        let reported = tools.calls.iter().any(|open| is_report(&open));
        let others_failed = tools.calls.iter().filter(|open| !is_report(open)).any(is_error);
        let is_last = self.must_report_now();
        if !reported && !is_last {
            return self.next_step(now, step, schedule, fx);
        }
        let is_valid = self.keep_report();
        if is_valid && (!others_failed || is_last) {
            return self.seal(now, DoneReason::Stop, None, fx);
        }
        if reported {
            self.collapse(fx);
        }
        match (reported, is_valid) {
            (_, true) => self.next_step(now, step, schedule, fx),
            (true, false) => self.guide_by_results(now, step, REJECTED, schedule, fx),
            (false, false) => self.guide_by_results(now, step, NO_REPORT, schedule, fx),
        }
    }

    /// Like [`Self::guide`], if the results of the calls already say what is wrong. After the last counted step, only
    /// steps that do not count are left.
    fn guide_by_results(
        &mut self,
        now: Millis,
        step: u32,
        why: &str,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        if self.fail_attempt(now, why, self.must_report_now(), fx).is_some() {
            self.next_step(now, step, schedule, fx);
        }
    }

    /// Handles a reply that was cut off together with its calls.
    pub(super) fn on_cut_calls(
        &mut self,
        now: Millis,
        reason: &DoneReason,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        self.collapse(fx);
        self.guide(now, &[cut_short(reason).unwrap_or(NO_REPORT)], schedule, fx);
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
        if let Some(by) = self.forces_report(&failure, &given_up) {
            return self.ask_for_report(now, by, &failure, &given_up, schedule, fx);
        }
        if self.reporting.as_ref().is_some_and(|reporting| reporting.kept.is_some()) {
            self.leave(now, given_up.outcome, Some(&failure.message), fx);
            return self.seal(now, DoneReason::Stop, None, fx);
        }
        self.fail(now, failure, given_up, fx);
    }

    /// Whether failures are no longer retried, because the report was requested after retries were exhausted.
    pub(super) fn is_past_retries(&self) -> bool {
        self.reporting.as_ref().is_some_and(|reporting| reporting.forced == Some(ForcedBy::Exhausted))
    }

    fn forces_report(&self, failure: &Failure, given_up: &GiveUp) -> Option<ForcedBy> {
        let Phase::Streaming(streaming) = &self.phase else { return None };
        let is_open = self.reporting.as_ref().is_some_and(|reporting| reporting.forced.is_none());
        if !is_open || streaming.has_content() {
            return None;
        }
        match given_up.outcome {
            _ if self.is_summarizing() || failure.category == Category::ContextOverflow => {
                Some(ForcedBy::Overflow)
            }
            RetryOutcome::Exhausted | RetryOutcome::TooLong => Some(ForcedBy::Exhausted),
            _ => None,
        }
    }

    /// Asks the same step again, for the report alone.
    fn ask_for_report(
        &mut self,
        now: Millis,
        by: ForcedBy,
        failure: &Failure,
        given_up: &GiveUp,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        self.end_retries(given_up.outcome, Some(&failure.message), fx);
        self.end_compaction(CompactionOutcome::Failed, Some(&failure.message), fx);
        self.return_to_own_targets();
        let Phase::Streaming(streaming) = &self.phase else { return };
        let (op, mut ledger) = (streaming.op, streaming.ledger.next_series(self.target));
        if let Some(summarizing) = &streaming.ledger.summarizing {
            ledger.out.clone_from(&summarizing.out);
        }
        if let Some(reporting) = &mut self.reporting {
            reporting.forced = Some(by);
        }
        fx.tell(EventBody::ReportForced { step_id: self.step_id(op.step), by });
        if !self.is_chosen {
            self.choose_target(now, Some(&ledger), schedule, fx);
            ledger.target = self.target;
        }
        self.enter(Phase::Streaming(Streaming::new(op.next(), ledger, now)));
    }

    /// Ends the turn after the model's last attempt failed.
    fn end_without_report(&mut self, now: Millis, fx: &mut Effects) {
        let Some(reporting) = &self.reporting else { return };
        if reporting.kept.is_some() {
            return self.seal(now, DoneReason::Stop, None, fx);
        }
        let (failed, last) = (reporting.failed, &reporting.last);
        let message = format!("the model gave no acceptable final report in {failed} attempts: {last}");
        let failure = Failure::new(Category::InvalidResponse, false, message);
        self.fail(now, failure, RetryOutcome::Cancelled.into(), fx);
    }

    /// Leaves one more step after an attempt to report or a reply that was cut off.
    fn collapse(&mut self, fx: &mut Effects) {
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

/// Returns what is wrong with a reply that ended for this reason.
fn cut_short(reason: &DoneReason) -> Option<&'static str> {
    match reason {
        DoneReason::Length => Some("the reply was cut off at the token limit: be shorter"),
        DoneReason::ContentFilter => Some("a content filter blocked the reply"),
        _ => None,
    }
}
