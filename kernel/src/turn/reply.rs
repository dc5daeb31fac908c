//! Failed replies of a turn that must report: the model is told why, and its step goes on with another call.

use alloc::{format, string::String};

use everturn_wire::{Category, Chunk, DoneReason, EventBody, Failure, ForcedBy, RetryOutcome, Role};

use super::Turn;
use crate::{Effects, Ledger, Millis, Op, Schedule, phase::Phase, report::AfterReply};

/// Why a reply without a report failed.
pub(super) const NO_REPORT: &str =
    "the reply has neither a tool call nor a final report: call a tool, or final_report when you are done";
pub(super) const EMPTY: &str = "the reply was empty";

impl Turn {
    /// Handles a failed reply: tells the model why, and goes on.
    pub(super) fn guide(&mut self, now: Millis, reasons: &[&str], schedule: &dyn Schedule, fx: &mut Effects) {
        let why = reasons[..reasons.len().min(2)].join(" | ");
        let Some(step) = self.step() else { return };
        let after = self.fail_reply(&why, schedule);
        let attempt = self.reporting.as_ref().map_or(0, |reporting| reporting.failed_in_step);
        if after != AfterReply::End {
            fx.keep(Role::System, Chunk::System { text: format!("TURN-FAILED: {why}"), keeps_from: None });
            let (step_id, max_attempts) = (self.step_id(step), self.max_replies());
            fx.tell(EventBody::ReportMissing { step_id, reason: why.clone(), attempt, max_attempts });
        }
        self.go_on_after_reply(now, after, why, schedule, fx);
    }

    /// Like [`Self::guide`], if the results of the calls already say what is wrong.
    pub(super) fn guide_by_results(
        &mut self,
        now: Millis,
        why: &str,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let after = self.fail_reply(why, schedule);
        self.go_on_after_reply(now, after, why.into(), schedule, fx);
    }

    fn fail_reply(&mut self, why: &str, schedule: &dyn Schedule) -> AfterReply {
        let (max, is_last_step) = (self.max_replies(), self.must_report_now());
        let ledger = self.answered_by().unwrap_or_default();
        let calls_left = !self.is_last_call(&ledger, schedule);
        let Some(reporting) = &mut self.reporting else { return AfterReply::End };
        reporting.fail(why, max, calls_left, is_last_step)
    }

    fn go_on_after_reply(
        &mut self,
        now: Millis,
        after: AfterReply,
        why: String,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Some(step) = self.step().map(|step| step.saturating_add(1)) else { return };
        match after {
            AfterReply::Again => self.go_on_with_step(now, step, why, schedule, fx),
            AfterReply::LastStep => {
                if let Some(reporting) = &mut self.reporting {
                    reporting.forced = Some(ForcedBy::Exhausted);
                }
                self.next_step(now, step, schedule, fx);
                fx.tell(EventBody::ReportForced { step_id: self.step_id(step), by: ForcedBy::Exhausted });
            }
            AfterReply::End => self.end_without_report(now, fx),
        }
    }

    /// Makes another call of the same step. Under some schedules it moves along the route as after other failures.
    fn go_on_with_step(
        &mut self,
        now: Millis,
        step: u32,
        why: String,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Some(ledger) = self.answered_by() else { return };
        let failure = Failure::new(Category::InvalidResponse, true, why);
        let decided = match schedule.counts_replies() {
            true => self.decide(now, &ledger, &failure, schedule).ok(),
            false => None,
        };
        match decided {
            Some(decided) => {
                self.inject_queue(fx);
                let op = Op { step, attempt: 0 };
                self.begin_series(now, op, ledger.after_reply(), decided, failure, fx);
                self.tell_last_step(step, fx);
            }
            None => self.begin_calls(now, step, ledger.after_reply(), schedule, fx),
        }
    }

    /// Returns the ledger of the step whose reply is being handled.
    fn answered_by(&self) -> Option<Ledger> {
        let Phase::Tools(tools) = &self.phase else { return None };
        tools.ledger.as_deref().cloned()
    }

    fn max_replies(&self) -> u32 {
        self.settings.final_report.unwrap_or_default().max_attempts.max(1)
    }

    /// Whether the step may make no further call, whether this one fails or its reply does. One limit covers both: the
    /// schedule's. A schedule that does not count replies allows at least as many calls as the report allows replies.
    pub(super) fn is_last_call(&self, ledger: &Ledger, schedule: &dyn Schedule) -> bool {
        let Some(retries) = schedule.max_retries() else { return false };
        let own = retries.saturating_add(1);
        let most = if schedule.counts_replies() { own } else { own.max(self.max_replies()) };
        ledger.calls() >= most
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
}

/// Returns what is wrong with a reply that ended for this reason.
fn cut_short(reason: &DoneReason) -> Option<&'static str> {
    match reason {
        DoneReason::Length => Some("the reply was cut off at the token limit: be shorter"),
        DoneReason::ContentFilter => Some("a content filter blocked the reply"),
        _ => None,
    }
}
