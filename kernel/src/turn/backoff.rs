//! Leaving `Backoff`: the wait is over, or someone ends it.

use alloc::{boxed::Box, format};

use everturn_wire::{Category, ConversationStatus, EventBody, Failure};

use super::Turn;
use crate::{
    Effects, Millis, Op, Schedule,
    phase::{Backoff, Phase, Streaming},
};

/// What the end of a chain of retries is called when a person ended it.
const RETRY_CANCELLED: &str = "Retry cancelled";

impl Turn {
    pub(super) fn on_tick(&mut self, now: Millis, op: Op, fx: &mut Effects) {
        if let Phase::Backoff(backoff) = &self.phase
            && backoff.op == op
            && now >= backoff.resume_at
        {
            self.try_again(now, fx);
        }
    }

    /// A person skips the wait, or does not want to wait for a silent provider.
    pub(super) fn on_retry_now(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        match &self.phase {
            Phase::Backoff(_) => self.try_again(now, fx),
            // Only what watchers were told: so a second press on "retry now" does not cut off the call of the first.
            Phase::Streaming(streaming) if self.takes_retry_now() => {
                let (op, tally) = (streaming.op, streaming.tally.clone());
                let waited_s = now.since(streaming.since) / 1000;
                let message = format!("no answer for {waited_s} s; asked again by a person");
                let failure = Failure::new(Category::Timeout, true, message);
                self.back_off(Backoff::after(now, op, tally, 0), failure, schedule.max_retries(), fx);
                self.try_again(now, fx);
            }
            Phase::Streaming(_) | Phase::Tools(_) | Phase::Sealed(_) => {}
        }
    }

    pub(super) fn on_abort_retry(&mut self, now: Millis, fx: &mut Effects) {
        if self.retry().is_some() {
            self.abort(now, Some(RETRY_CANCELLED), fx);
        }
    }

    /// Asks the provider again, and tells that the wait is over: it may have been cut short.
    fn try_again(&mut self, now: Millis, fx: &mut Effects) {
        let Phase::Backoff(backoff) = &self.phase else { return };
        let again = Streaming::new(backoff.op, backoff.tally.clone(), now);
        self.enter(Phase::Streaming(again));
        let retry = self.retry().map(Box::new);
        fx.tell(EventBody::Status { status: ConversationStatus::Active, retry });
    }
}
