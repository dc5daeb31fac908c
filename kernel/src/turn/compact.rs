//! Compaction: replaces the older part of a history that does not fit the model's context, then asks the step again.

use alloc::{boxed::Box, format};
use core::mem;

use everturn_wire::{
    Category, Chunk, CompactionCause, CompactionOutcome, DoneReason, EventBody, Failure, RetryOutcome, Role,
    TargetRole, TurnId,
};

use super::Turn;
use crate::{
    Effects, GiveUp, Ledger, Millis, Op, Schedule, Settings, Summary, Target,
    compaction::{Compacted, Summarizing},
    phase::{Phase, Streaming},
};

impl Turn {
    /// Begins a turn that has no message and only summarizes the older history, perhaps like turn `again`, which failed. It waits
    /// and retries like any other, and ends with the summary.
    pub fn begin_compaction(
        id: TurnId,
        settings: Settings,
        again: Option<TurnId>,
        now: Millis,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) -> Self {
        fx.tell(EventBody::TurnStart { retry_of: again.clone(), message_seq: None, supersedes: None });
        let mut turn = Self { retry_of: again, ..Self::new(id, settings, now) };
        turn.choose_first_target(now, schedule, fx);
        turn.compact(now, (CompactionCause::Requested, None), schedule, fx);
        turn
    }

    /// Whether the wanted call is for a summary of the older history, and not for the answer.
    pub fn is_summarizing(&self) -> bool {
        self.summarizing().is_some()
    }

    /// Whether [`StreamEvent::NearlyFull`](crate::StreamEvent::NearlyFull) applies to the wanted call: it is replaced by
    /// a summary ([`Self::may_compact_ahead`]) or, without compaction, by a call for the report alone.
    pub fn takes_nearly_full(&self) -> bool {
        let Phase::Streaming(streaming) = &self.phase else { return false };
        let may_shorten = self.settings.compaction.is_none() && self.must_report() && !self.is_cut_down();
        self.may_compact_ahead() || (may_shorten && !streaming.has_content())
    }

    /// Whether [`StreamEvent::NearlyFull`](crate::StreamEvent::NearlyFull) would start a summary before the wanted call
    /// is made.
    pub fn may_compact_ahead(&self) -> bool {
        let Phase::Streaming(streaming) = &self.phase else { return false };
        self.may_compact(streaming, CompactionCause::Ahead)
    }

    /// Returns the targets that the step asks now: the turn's own, or those that summarize.
    pub(super) fn targets(&self) -> &[Target] {
        match &self.settings.compaction {
            Some(compaction) if self.is_summarizing() && !compaction.targets.is_empty() => {
                &compaction.targets
            }
            _ => &self.settings.targets,
        }
    }

    /// Returns what the targets are asked for.
    pub(super) fn role(&self) -> TargetRole {
        if self.is_summarizing() { TargetRole::Compactor } else { TargetRole::Main }
    }

    /// Whether the step asks targets other than the turn's own.
    pub(super) fn asks_others(&self) -> bool {
        self.is_summarizing() && self.settings.compaction.as_ref().is_some_and(|own| !own.targets.is_empty())
    }

    /// Whether this failure, an overflow, is answered with a summary.
    pub(super) fn compacts_on(&self, failure: &Failure) -> bool {
        let Phase::Streaming(streaming) = &self.phase else { return false };
        failure.category == Category::ContextOverflow
            && !streaming.has_content()
            && self.may_compact(streaming, CompactionCause::Overflow)
    }

    fn may_compact(&self, streaming: &Streaming, cause: CompactionCause) -> bool {
        let Ledger { summarizing, compacted, .. } = &streaming.ledger;
        self.settings.compaction.is_some()
            && summarizing.is_none()
            && *compacted < Compacted::by(cause)
            && !streaming.has_content()
    }

    /// Handles the host's report that the request barely fits: makes a summary, or forces the report. If neither applies,
    /// the step has overflowed.
    pub(super) fn on_nearly_full(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        if self.may_compact_ahead() {
            return self.compact(now, (CompactionCause::Ahead, None), schedule, fx);
        }
        let message = "the conversation barely fits the model's context";
        self.on_failed(now, Failure::new(Category::ContextOverflow, false, message), schedule, fx);
    }

    /// Starts a summary. `refusal`: what calls for it.
    pub(super) fn compact(
        &mut self,
        now: Millis,
        (cause, refusal): (CompactionCause, Option<Failure>),
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        let (op, answering) = (streaming.op, streaming.ledger.clone());
        self.end_retries(RetryOutcome::NotRetryable, None, fx);
        let (message, code) = refusal.map_or((None, None), |refusal| (Some(refusal.message), refusal.code));
        fx.tell(EventBody::CompactionStarted {
            step_id: self.step_id(op.step),
            cause,
            message,
            code,
            // Filled in by the host, which made the call.
            failed_target: None,
            failed_at: None,
            latency_ms: None,
        });
        let (target, is_chosen, out) = (self.target, self.is_chosen, answering.out.clone());
        let summarizing = Some(Box::new(Summarizing { cause, target, is_chosen, out }));
        // From here on, the step asks the targets that summarize.
        if let Phase::Streaming(streaming) = &mut self.phase {
            streaming.ledger.summarizing.clone_from(&summarizing);
        }
        let asks_others = self.asks_others();
        if asks_others {
            (self.target, self.is_chosen) = (0, false);
        }
        let mut ledger = Ledger { summarizing, ..answering.next_series(self.target, self.hinted(now)) };
        if asks_others {
            ledger.out.clear();
            self.choose_first(now, &ledger, schedule, fx);
        }
        self.ask_unless_hinted(now, op, ledger, schedule, fx);
    }

    /// Handles the summary: saves it and asks the step again.
    pub(super) fn on_summary(
        &mut self,
        now: Millis,
        summary: Summary,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        let Some(summarizing) = streaming.ledger.summarizing.as_deref() else { return };
        if summary.text.trim().is_empty() {
            let empty = Failure::new(Category::InvalidResponse, true, "the summary is empty");
            return self.on_failed(now, empty, schedule, fx);
        }
        let (cause, step_id) = (summarizing.cause, self.step_id(streaming.op.step));
        self.tell_recovered(fx);
        self.settle_own_usage(fx);
        let Summary { text, keeps_from } = summary;
        fx.keep(Role::System, Chunk::System { text: text.clone(), keeps_from: Some(keeps_from) });
        fx.tell(EventBody::CompactionCompleted {
            step_id,
            outcome: CompactionOutcome::Summarized,
            summary: Some(text),
            keeps_from: Some(keeps_from),
            message: None,
        });
        // It was measured before the compaction.
        self.context_size = None;
        match cause {
            CompactionCause::Requested => self.seal(now, DoneReason::Stop, None, fx),
            _ => self.resume_step(now, Compacted::by(cause), schedule, fx),
        }
    }

    /// Handles the final failure of a call for a summary. If no overflow has happened, the step continues without it.
    pub(super) fn give_up_summary(
        &mut self,
        now: Millis,
        failure: Failure,
        given_up: GiveUp,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        if self.is_summary_ahead() {
            self.end_retries(given_up.outcome, Some(&failure.message), fx);
            self.end_compaction(CompactionOutcome::Failed, Some(&failure.message), fx);
            return self.resume_step(now, Compacted::Ahead, schedule, fx);
        }
        let is_requested =
            self.summarizing().is_some_and(|summarizing| summarizing.cause == CompactionCause::Requested);
        let what = match is_requested {
            true => "the conversation could not be summarized",
            false => "the conversation is too long for the model, and summarizing it failed",
        };
        let message = format!("{what}: {}", failure.message);
        self.give_up(now, Failure { message, ..failure }, given_up, schedule, fx);
    }

    /// Whether a summary is being made before an overflow. It is not worth a wait, because the call may still fit.
    pub(super) fn is_summary_ahead(&self) -> bool {
        self.summarizing().is_some_and(|summarizing| summarizing.cause == CompactionCause::Ahead)
    }

    /// Publishes that no summary comes, if one is being made.
    pub(super) fn end_compaction(
        &mut self,
        outcome: CompactionOutcome,
        message: Option<&str>,
        fx: &mut Effects,
    ) {
        let (Some(_), Some(step)) = (self.summarizing(), self.step()) else { return };
        fx.tell(EventBody::CompactionCompleted {
            step_id: self.step_id(step),
            outcome,
            summary: None,
            keeps_from: None,
            message: message.map(Into::into),
        });
    }

    /// Returns from the summary to the answer of the step.
    fn resume_step(&mut self, now: Millis, compacted: Compacted, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Streaming(Streaming { op, ledger, .. }) = &mut self.phase else { return };
        let (op, mut ledger) = (*op, mem::take(ledger));
        let Some(summarizing) = ledger.summarizing.take() else { return };
        let Summarizing { target, is_chosen, out, .. } = *summarizing;
        (self.target, self.is_chosen) = (target, is_chosen);
        let ledger = Ledger { out, compacted, ..ledger.next_series(target, self.hinted(now)) };
        self.ask_unless_hinted(now, op, ledger, schedule, fx);
    }

    /// Makes the call after this one, unless its target has asked for a wait. That counts as a failure of the call, so that
    /// the schedule decides about it.
    fn ask_unless_hinted(
        &mut self,
        now: Millis,
        op: Op,
        mut ledger: Ledger,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Some(failure) = self.hints.failure(now, &self.asked()) else {
            return self.ask(now, op.next(), ledger);
        };
        ledger.target = self.target;
        // It is not made.
        let over = Streaming { is_over: true, ..Streaming::new(op, ledger, now) };
        self.enter(Phase::Streaming(over));
        self.on_failed(now, failure, schedule, fx);
    }

    /// Returns to the turn's own targets, for a turn that ends while a summary is made.
    pub(super) fn return_to_own_targets(&mut self) {
        if let Some(&Summarizing { target, is_chosen, .. }) = self.summarizing() {
            (self.target, self.is_chosen) = (target, is_chosen);
        }
    }

    fn summarizing(&self) -> Option<&Summarizing> {
        match &self.phase {
            Phase::Streaming(Streaming { ledger, .. }) => ledger.summarizing.as_deref(),
            Phase::Backoff(backoff) => backoff.ledger.summarizing.as_deref(),
            Phase::Tools(_) | Phase::Sealed(_) => None,
        }
    }
}
