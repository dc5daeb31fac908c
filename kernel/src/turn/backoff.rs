//! Leaving `Backoff`: the wait is over, or someone ends it.

use super::Turn;
use crate::{
    Effects, Millis, Op,
    phase::{Phase, Streaming},
};

/// What the end of a wait is called when a person ended it.
const RETRY_CANCELLED: &str = "Retry cancelled";

impl Turn {
    pub(super) fn on_tick(&mut self, now: Millis, op: Op) {
        if let Phase::Backoff(backoff) = &self.phase
            && backoff.op == op
            && now >= backoff.resume_at
        {
            self.try_again(now);
        }
    }

    pub(super) fn on_retry_now(&mut self, now: Millis) {
        self.try_again(now);
    }

    pub(super) fn on_abort_retry(&mut self, now: Millis, fx: &mut Effects) {
        if let Phase::Backoff(_) = &self.phase {
            self.abort(now, Some(RETRY_CANCELLED), fx);
        }
    }

    fn try_again(&mut self, now: Millis) {
        if let Phase::Backoff(backoff) = &self.phase {
            self.enter(Phase::Streaming(Streaming::new(backoff.op, backoff.tally, now)));
        }
    }
}
