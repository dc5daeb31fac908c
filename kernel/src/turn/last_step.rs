//! A step that cannot be completed is asked once more, for the report alone. It waits and retries like any other.

use everturn_wire::{Category, CompactionOutcome, EventBody, Failure, ForcedBy, RetryOutcome};

use super::{Turn, retry::Decided};
use crate::{
    Ask, Effects, GiveUp, Ledger, Millis, NextCall, Op, Schedule,
    compaction::Summarizing,
    phase::{Charge, Phase},
};

/// How a step is asked for the report alone.
pub(super) struct LastStep {
    by: ForcedBy,
    op: Op,
    ledger: Ledger,
    /// Its first call.
    first: Decided,
}

impl Turn {
    /// Returns how the step is asked for the report alone; `None` if that cannot help, or cannot be afforded.
    pub(super) fn last_step(
        &self,
        now: Millis,
        failure: &Failure,
        given_up: &GiveUp,
        schedule: &dyn Schedule,
    ) -> Option<LastStep> {
        let Phase::Streaming(streaming) = &self.phase else { return None };
        let by = self.forced_by(failure, given_up)?;
        let targets = &self.settings.targets;
        let summarizing = streaming.ledger.summarizing.as_deref();
        let target = summarizing.map_or(self.target, |summarizing| summarizing.target);
        let mut ledger = streaming.ledger.next_series(target, self.hints.seen(now, targets));
        if let Some(Summarizing { out, .. }) = summarizing {
            ledger.out.clone_from(out);
        }
        ledger.budget = self.budget_of_report(now, &ledger);
        let first = match by {
            ForcedBy::Overflow => self.first_of_shortened(now, &ledger, schedule),
            _ => self.first_after_failure(now, &ledger, failure, schedule)?,
        };
        self.afford(now, &ledger, first.delay_ms, Charge::Budget).ok()?;
        Some(LastStep { by, op: streaming.op.next(), ledger, first })
    }

    fn forced_by(&self, failure: &Failure, given_up: &GiveUp) -> Option<ForcedBy> {
        let Phase::Streaming(streaming) = &self.phase else { return None };
        if self.reporting.is_none() || streaming.has_content() {
            return None;
        }
        match given_up.outcome {
            // Shortening the history may help also in the last step.
            _ if self.is_summarizing() || failure.category == Category::ContextOverflow => {
                (!self.is_cut_down()).then_some(ForcedBy::Overflow)
            }
            RetryOutcome::Exhausted | RetryOutcome::TooLong => {
                (!self.must_report_now()).then_some(ForcedBy::Exhausted)
            }
            _ => None,
        }
    }

    /// Returns the first call with a shortened history. The target that is asked has not failed, so it is asked again.
    fn first_of_shortened(&self, now: Millis, ledger: &Ledger, schedule: &dyn Schedule) -> Decided {
        let targets = &self.settings.targets;
        let call = NextCall { ledger: Some(ledger), ..NextCall::new(now, ledger.target, targets) };
        let wished = if self.is_chosen { ledger.target } else { schedule.next_target(&call) };
        let (target, delay_ms) = self.soonest(now, targets, wished, &ledger.out);
        Decided { ask: Ask::at_once(target), delay_ms }
    }

    /// Returns the first call after the schedule gave up, as the schedule decides if it is asked afresh. `None` if it does
    /// not retry at all, because that was turned off.
    fn first_after_failure(
        &self,
        now: Millis,
        ledger: &Ledger,
        failure: &Failure,
        schedule: &dyn Schedule,
    ) -> Option<Decided> {
        let targets = self.targets();
        match self.decide(now, ledger, failure, schedule) {
            Ok(Decided { ask, delay_ms }) => {
                // No hint is cut short for it.
                if delay_ms >= self.hint_ms(now, targets, ask.target) {
                    return Some(Decided { ask: Ask { clamped: false, ..ask }, delay_ms });
                }
                let (target, delay_ms) = self.soonest(now, targets, ask.target, &ledger.out);
                Some(Decided { ask: Ask { target, clamped: false, ..ask }, delay_ms })
            }
            // The wait is too long, but a target that can be asked at once needs none.
            Err(GiveUp { outcome: RetryOutcome::TooLong, .. }) => {
                let (target, delay_ms) = self.soonest(now, targets, ledger.target, &ledger.out);
                (delay_ms == 0).then(|| Decided { ask: Ask::at_once(target), delay_ms })
            }
            Err(_) => None,
        }
    }

    /// Returns the failure that makes a shortened history wait for this target.
    fn wait_for(&self, now: Millis, target: usize) -> Failure {
        let target = self.settings.targets.get(target).cloned().unwrap_or_default();
        let too_long =
            || Failure::new(Category::ContextOverflow, false, "the history is too long for the model");
        self.hints.failure(now, &target).unwrap_or_else(too_long)
    }

    /// Asks the same step again, for the report alone.
    pub(super) fn begin_last_step(
        &mut self,
        now: Millis,
        last_step: LastStep,
        failure: Failure,
        given_up: &GiveUp,
        fx: &mut Effects,
    ) {
        let LastStep { by, op, ledger, first } = last_step;
        self.end_retries(given_up.outcome, Some(&failure.message), fx);
        self.end_compaction(CompactionOutcome::Failed, Some(&failure.message), fx);
        self.return_to_own_targets();
        if let Phase::Streaming(streaming) = &mut self.phase {
            streaming.ledger.summarizing = None;
        }
        if let Some(reporting) = &mut self.reporting {
            (reporting.forced, reporting.failed_in_step) = (Some(by), 0);
        }
        fx.tell(EventBody::ReportForced { step_id: self.step_id(op.step), by });
        let failure = match by {
            // The target that is asked has not failed, but may have asked for a wait.
            ForcedBy::Overflow => self.wait_for(now, first.ask.target),
            _ => failure,
        };
        self.begin_series(now, op, ledger, first, failure, fx);
    }
}
