//! Ending a turn for good, from any phase.

use everturn_wire::{Chunk, DoneReason, EventBody, Failure, RetryOutcome, Role};

use super::Turn;
use crate::{Effects, Millis, Outcome, ToolAnswer, call::INTERRUPTED, phase::Phase};

impl Turn {
    /// Someone ends the turn: no error, what was said stays.
    pub(super) fn abort(&mut self, now: Millis, message: Option<&str>, fx: &mut Effects) {
        self.leave(now, RetryOutcome::Cancelled, message, fx);
        self.seal(now, DoneReason::Aborted, None, fx);
    }

    /// A failure ends the turn: told once and kept for people. `retries` is what becomes of those that were under way.
    pub(super) fn fail(&mut self, now: Millis, failure: Failure, retries: RetryOutcome, fx: &mut Effects) {
        let step_complete = match &self.phase {
            Phase::Streaming(streaming) => Some(streaming.timings(now, self.step_id(streaming.op.step))),
            Phase::Backoff(backoff) => {
                let step_id = self.step_id(backoff.op.step);
                Some(EventBody::StepComplete { step_id, ttft_ms: None, decode_ms: None, gen_total_ms: None })
            }
            Phase::Tools(_) | Phase::Sealed(_) => None,
        };
        self.leave(now, retries, Some(&failure.message), fx);
        let Failure { message, code, category, .. } = failure.clone();
        fx.keep(Role::Assistant, Chunk::Error { message: message.clone(), code: code.clone() });
        fx.tell(EventBody::Error { message, code, category: Some(category) });
        if let Some(event) = step_complete {
            fx.tell(event);
        }
        self.seal(now, DoneReason::Error, Some(failure), fx);
    }

    /// The end of every turn.
    pub(super) fn seal(
        &mut self,
        now: Millis,
        reason: DoneReason,
        failure: Option<Failure>,
        fx: &mut Effects,
    ) {
        fx.tell(EventBody::Done {
            reason: reason.clone(),
            duration_ms: Some(now.since(self.started_at)),
            usage: self.usage,
            context_size: self.context_size,
        });
        fx.tell(EventBody::TurnSealed);
        self.enter(Phase::Sealed(Outcome { reason, failure }));
    }

    /// Breaks off what the phase waits for, leaving a history that every provider accepts.
    fn leave(&mut self, now: Millis, retries: RetryOutcome, message: Option<&str>, fx: &mut Effects) {
        self.end_retries(retries, message, fx);
        match &self.phase {
            Phase::Streaming(_) => {
                self.abandon_step(fx);
            }
            Phase::Tools(_) => self.answer_all(now, &ToolAnswer::error(INTERRUPTED), fx),
            Phase::Backoff(_) | Phase::Sealed(_) => {}
        }
    }

    /// Tells that a series of retries is over which no token has ended yet.
    fn end_retries(&self, outcome: RetryOutcome, message: Option<&str>, fx: &mut Effects) {
        let attempts = match &self.phase {
            Phase::Streaming(streaming) if streaming.first_token_at.is_none() => streaming.tally.retries,
            Phase::Backoff(backoff) => backoff.tally.retries,
            Phase::Streaming(_) | Phase::Tools(_) | Phase::Sealed(_) => 0,
        };
        if attempts > 0 {
            fx.tell(EventBody::RetryEnded { attempts, outcome, message: message.map(Into::into) });
        }
    }
}
