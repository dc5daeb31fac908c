//! Ending a turn for good, from any phase.

use everturn_wire::{
    Chunk, CompactionOutcome, DoneReason, ErrorReport, EventBody, Failure, RejectedImage, RetryOutcome, Role,
};

use super::Turn;
use crate::{
    Effects, GiveUp, Ledger, Millis, Outcome, ToolAnswer,
    call::{INTERRUPTED, OpenCall},
    hint::Hints,
    phase::{Backoff, Phase},
};

impl Turn {
    /// Stops the turn without an error. Its content stays.
    pub(super) fn abort(&mut self, now: Millis, message: Option<&str>, fx: &mut Effects) {
        self.leave(now, RetryOutcome::Cancelled, message, fx);
        self.seal(now, DoneReason::Aborted, None, fx);
    }

    /// Ends the turn with a failure, which is published once and kept for people with what was done about it.
    pub(super) fn fail(&mut self, now: Millis, failure: Failure, given_up: GiveUp, fx: &mut Effects) {
        let step_complete = match &self.phase {
            Phase::Streaming(streaming) => Some(streaming.timings(now, self.step_id(streaming.op.step))),
            Phase::Backoff(backoff) => {
                let step_id = self.step_id(backoff.op.step);
                Some(EventBody::StepComplete {
                    step_id,
                    ttft_ms: None,
                    decode_ms: None,
                    gen_total_ms: None,
                    reported: None,
                })
            }
            Phase::Tools(_) | Phase::Sealed(_) => None,
        };
        // An internal fault interrupts retries; that is not giving up, so it is not reported as such.
        let is_given_up = given_up.outcome != RetryOutcome::Cancelled;
        let ledger = if is_given_up { self.ledger() } else { Ledger::default() };
        let retries = Some(ledger.made()).filter(|count| *count > 0);
        let waited_ms = Some(ledger.waited_ms).filter(|wait| *wait > 0);
        let GiveUp { outcome: ended, detail } = given_up;
        self.leave(now, ended, Some(detail.as_ref().unwrap_or(&failure.message)), fx);
        let outcome =
            Some(ended).filter(|_| matches!(ended, RetryOutcome::Exhausted | RetryOutcome::TooLong));
        let Failure { message, code, category, advice, rejects_image, .. } = failure.clone();
        let category = Some(category);
        let report = ErrorReport {
            message,
            code,
            category,
            advice,
            retries,
            waited_ms,
            outcome,
            detail,
            // The host fills in the model.
            rejected_image: rejects_image.then(RejectedImage::default),
        };
        fx.keep(Role::Assistant, Chunk::Error(report.clone()));
        fx.tell(EventBody::Error(report));
        if let Some(event) = step_complete {
            fx.tell(event);
        }
        self.seal(now, DoneReason::Error, Some(failure), fx);
    }

    /// Seals the turn. Every turn ends here.
    pub(super) fn seal(
        &mut self,
        now: Millis,
        reason: DoneReason,
        failure: Option<Failure>,
        fx: &mut Effects,
    ) {
        if let Phase::Backoff(backoff) = &self.phase {
            // The pending retry will not be made.
            self.retries = self.retries.saturating_sub((!backoff.held).into());
            self.waited_ms = self.waited_ms.saturating_sub(backoff.resume_at.since(now));
        }
        let report = self.tell_report(&reason, failure.as_ref(), fx);
        let handed = self.calls().iter().filter(|open| open.is_of_caller() && open.answer().is_some());
        let calls = handed.map(OpenCall::caller_call).collect();
        fx.tell(EventBody::Done {
            calls,
            reason: reason.clone(),
            duration_ms: Some(now.since(self.started_at)),
            usage: self.usage,
            context_size: self.context_size,
            first_token_ms: self.first_token_at.map(|at| at.since(self.started_at)),
            model: None, // a turn without a route does not know it: the orchestrator does
        });
        fx.tell(EventBody::TurnSealed);
        self.return_to_own_targets();
        self.hints = Hints::default();
        self.enter(Phase::Sealed(Outcome { reason, failure, report }));
    }

    /// Interrupts what the phase waits for, and leaves a history that every provider accepts.
    pub(super) fn leave(
        &mut self,
        now: Millis,
        retries: RetryOutcome,
        message: Option<&str>,
        fx: &mut Effects,
    ) {
        self.end_retries(retries, message, fx);
        let is_cancelled = retries == RetryOutcome::Cancelled;
        let outcome = if is_cancelled { CompactionOutcome::Cancelled } else { CompactionOutcome::Failed };
        self.end_compaction(outcome, message, fx);
        self.bring_back(fx);
        match &self.phase {
            Phase::Streaming(_) => self.abandon_step(fx),
            Phase::Tools(_) => {
                self.keep_report();
                self.answer_all(now, &ToolAnswer::error(INTERRUPTED), fx);
            }
            Phase::Backoff(_) | Phase::Sealed(_) => {}
        }
    }

    /// Returns the ledger of the current step.
    fn ledger(&self) -> Ledger {
        match &self.phase {
            Phase::Streaming(streaming) => streaming.ledger.clone(),
            Phase::Backoff(backoff) => backoff.ledger.clone(),
            Phase::Tools(_) | Phase::Sealed(_) => Ledger::default(),
        }
    }

    /// Announces the end of a series of retries, unless content has ended it already. A wait that is too long ends it
    /// before the first retry.
    pub(super) fn end_retries(&self, outcome: RetryOutcome, message: Option<&str>, fx: &mut Effects) {
        // A retry that is still waiting was scheduled but not made.
        let (is_chain, attempts) = match &self.phase {
            Phase::Streaming(streaming) => (streaming.is_retry(), streaming.ledger.made()),
            Phase::Backoff(Backoff { ledger, .. }) => {
                let is_asked = ledger.last.as_deref().is_none_or(|last| !last.shared);
                (true, ledger.made().saturating_sub(is_asked.into()))
            }
            Phase::Tools(_) | Phase::Sealed(_) => return,
        };
        if is_chain || outcome == RetryOutcome::TooLong {
            fx.tell(EventBody::RetryEnded {
                attempts,
                outcome,
                message: message.map(Into::into),
                target: None,
            });
        }
    }
}
