//! Recovery after the process ended. Decided here so that every host behaves the same.

use alloc::format;

use everturn_wire::{Category, EventBody, Failure, RetryOutcome};

use super::Turn;
use crate::{
    Effects, Millis, Schedule,
    call::OpenCall,
    phase::{Phase, Piece, Streaming},
};

const RESTARTED: &str = "the server restarted while this step was streaming";

impl Turn {
    /// Saves everything streamed so far. A step interrupted by an orderly shutdown did not kill its process, so this
    /// never counts as a recovery.
    pub(super) fn on_checkpoint(&mut self) {
        if let Phase::Streaming(_) | Phase::Tools(_) = self.phase {
            self.recoveries = 0;
            self.revision += 1;
        }
    }

    /// Withdraws what was published since the last save, and publishes the kept part again.
    pub(super) fn on_unsaved(&mut self, now: Millis, failure: Failure, fx: &mut Effects) {
        if let Phase::Streaming(streaming) = &self.phase {
            let step_id = self.step_id(streaming.op.step);
            fx.tell(EventBody::StepRewound { step_id, reason: failure.message.clone() });
            self.tell_again(fx);
        }
        self.fail(now, failure, RetryOutcome::Cancelled.into(), fx);
    }

    pub(super) fn on_recover(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        match &mut self.phase {
            Phase::Streaming(_) => self.recover_stream(now, schedule, fx),
            Phase::Backoff(backoff) => {
                // Keep the rest of the wait. A clock that was set back cannot make it longer than decided.
                let latest = now.plus(backoff.decided_ms);
                if backoff.resume_at > latest {
                    backoff.resume_at = latest;
                    self.revision += 1;
                }
            }
            Phase::Tools(_) => {
                self.clamp_checks(now);
                // Waiting for people does not kill a process, so it does not count.
                if !self.waits_for_people() && self.may_recover(now, fx) {
                    self.recover_tools(now, schedule, fx);
                }
            }
            Phase::Sealed(_) => {}
        }
    }

    /// Streams the text again from its start, unless tools of this step have already started.
    fn recover_stream(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        let op = streaming.op;
        if streaming.calls.iter().any(OpenCall::has_begun) {
            // Repeating the call would run the tools again, so the step ends with what is known.
            fx.tell(EventBody::StepRewound { step_id: self.step_id(op.step), reason: RESTARTED.into() });
            self.tell_again(fx);
            self.complete_step(now, fx);
            if self.may_recover(now, fx) {
                self.recover_tools(now, schedule, fx);
            }
            return;
        }
        match self.is_summarizing() {
            // Nobody has seen anything of a summary.
            true => self.settle_own_usage(fx),
            false => self.rewind(RESTARTED, fx),
        }
        let Phase::Streaming(streaming) = &self.phase else { return };
        let fresh = Streaming::new(op.next(), streaming.ledger.clone(), now);
        self.enter(Phase::Streaming(fresh));
        self.may_recover(now, fx);
    }

    fn recover_tools(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        let idempotent = self.settings.idempotent_tools.clone();
        self.answer_where(now, |open| open.after_crash(&idempotent), fx);
        self.start_tools(now, schedule, fx);
    }

    /// Counts the recoveries of a step. One too many ends the turn, so that a turn that kills its process is not
    /// restarted for ever.
    fn may_recover(&mut self, now: Millis, fx: &mut Effects) -> bool {
        self.recoveries = self.recoveries.saturating_add(1);
        self.revision += 1;
        if self.recoveries <= self.settings.max_recoveries {
            return true;
        }
        let times = self.recoveries;
        let message = format!(
            "the process ended or could not save {times} times while this step ran; the turn was given up"
        );
        self.fail(now, Failure::new(Category::Internal, false, message), RetryOutcome::Cancelled.into(), fx);
        false
    }

    /// Publishes the kept part of the step again after a rewind.
    fn tell_again(&self, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        let step_id = self.step_id(streaming.op.step);
        for piece in &streaming.pieces {
            match piece.clone() {
                Piece::Text(delta) => fx.tell(EventBody::TextDelta { delta }),
                Piece::Thinking { text, .. } if text.is_empty() => {}
                Piece::Thinking { text: delta, .. } => fx.tell(EventBody::ReasoningDelta { delta }),
            }
        }
        for open in &streaming.calls {
            fx.tell(told_again(open.called_event(&step_id)));
            if let Some(answer) = open.answer() {
                fx.tell(told_again(open.result_event(&step_id, answer, None)));
            }
        }
    }
}

/// Marks a call or a result that was saved, and so published, before.
fn told_again(mut event: EventBody) -> EventBody {
    if let EventBody::ToolCall { again, .. } | EventBody::ToolResult { again, .. } = &mut event {
        *again = Some(true);
    }
    event
}
