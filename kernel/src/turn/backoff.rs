//! Leaving `Backoff`: the wait ended, or a user ended it.

use alloc::{boxed::Box, format};

use everturn_wire::{Category, ConversationStatus, EventBody, Failure};

use super::{Turn, retry::Told};
use crate::{
    Effects, Millis, Op, Schedule,
    phase::{Backoff, Charge, Phase},
};

/// The message when a user cancels a series of retries.
const RETRY_CANCELLED: &str = "Retry cancelled";

impl Turn {
    pub(super) fn on_tick(&mut self, now: Millis, op: Op, schedule: &dyn Schedule, fx: &mut Effects) {
        if let Phase::Backoff(backoff) = &self.phase
            && backoff.op == op
            && now >= backoff.resume_at
        {
            self.end_wait(now, schedule, fx);
        }
    }

    /// Handles the early end of a hold.
    pub(super) fn on_release(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        if self.is_held() {
            self.end_wait(now, schedule, fx);
        }
    }

    fn end_wait(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Backoff(backoff) = &self.phase else { return };
        let ledger = backoff.ledger.clone();
        self.choose_after_wait(now, &ledger, schedule, fx);
        self.try_again(now, fx);
    }

    /// Handles a user who skips the wait, or repeats the call of a silent provider.
    pub(super) fn on_retry_now(&mut self, now: Millis, fx: &mut Effects) {
        match &self.phase {
            Phase::Backoff(_) => {
                self.try_again(now, fx);
                self.insist();
            }
            // Only after subscribers were told of the silence. Otherwise a second "retry now" would cancel the call
            // made by the first.
            Phase::Streaming(streaming) if self.takes_retry_now() => {
                let (op, mut ledger) = (streaming.op, streaming.ledger.clone());
                let waited_s = now.since(streaming.since) / 1000;
                self.count_call();
                ledger.uncounted = ledger.uncounted.saturating_add(1);
                let message = format!("no answer for {waited_s} s; asked again by a person");
                let failure = Failure::new(Category::Timeout, true, message);
                let backoff = Backoff::after(now, op, ledger, 0, Charge::Budget);
                self.back_off(backoff, failure, Told::default(), fx);
                self.try_again(now, fx);
                self.insist();
            }
            Phase::Streaming(_) | Phase::Tools(_) | Phase::Sealed(_) => {}
        }
    }

    /// Marks the call as requested by a person, so that it is made whatever is known about its target.
    fn insist(&mut self) {
        if let Phase::Streaming(streaming) = &mut self.phase {
            streaming.by_person = true;
        }
    }

    pub(super) fn on_abort_retry(&mut self, now: Millis, fx: &mut Effects) {
        if self.retry().is_some() {
            self.abort(now, Some(RETRY_CANCELLED), fx);
        }
    }

    /// Calls the provider again. Announces the end of the wait, which may have been cut short.
    fn try_again(&mut self, now: Millis, fx: &mut Effects) {
        let Phase::Backoff(backoff) = &self.phase else { return };
        let (op, mut ledger) = (backoff.op, backoff.ledger.clone());
        let left_ms = backoff.resume_at.since(now).min(backoff.decided_ms);
        if let Some(sum) = backoff.charge.sum(&mut ledger) {
            *sum = sum.saturating_sub(left_ms);
        }
        self.waited_ms = self.waited_ms.saturating_sub(left_ms);
        self.ask(now, op, ledger);
        let retry = self.retry().map(Box::new);
        fx.tell(EventBody::Status { status: ConversationStatus::Active, retry });
    }
}
