//! Holds: a call is put off because of what other turns found out.

use everturn_wire::{Failure, RetryOutcome};

use super::{Turn, retry::Told};
use crate::{
    Effects, Hold, Millis, Schedule,
    millis::LONGEST_WAIT_MS,
    phase::{Backoff, Charge, Phase, Streaming},
};

impl Turn {
    /// Returns how long the budget of the step lets a call be put off, in milliseconds. A call that would have to wait longer
    /// is made at once.
    pub fn affordable_ms(&self, now: Millis) -> u64 {
        let Phase::Streaming(Streaming { ledger, .. }) = &self.phase else { return 0 };
        self.budget(ledger).left(now, ledger.waited_ms).unwrap_or(u64::MAX)
    }

    /// Handles a call that was put off. No target was asked, so the schedule does not decide. News about other targets
    /// is considered when the wait ends.
    pub(super) fn on_held(&mut self, now: Millis, hold: Hold, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        if streaming.has_content() {
            return;
        }
        if self.is_summary_ahead() {
            return self.give_up_summary(now, hold.failure, RetryOutcome::NotRetryable.into(), schedule, fx);
        }
        let (op, mut ledger) = (streaming.op, streaming.ledger.clone());
        let Hold { failure, wait_ms, shared, because, in_budget, open_ended } = hold;
        // Time has passed since the host asked what is affordable.
        let left = self.affordable_ms(now);
        let most = if open_ended && in_budget && left > 0 { left } else { u64::MAX };
        let delay_ms = wait_ms.min(most).min(LONGEST_WAIT_MS);
        let charge = if in_budget { Charge::Budget } else { Charge::Nothing };
        if let Err(given_up) = self.afford(now, &ledger, delay_ms, charge) {
            let failure = Failure { hint_ms: failure.hint_ms.or(Some(delay_ms)), ..failure };
            return self.give_up(now, failure, given_up, schedule, fx);
        }
        ledger.uncounted = ledger.uncounted.saturating_add(1);
        ledger.unasked = ledger.unasked.saturating_add(shared.into());
        let backoff = Backoff { held: true, ..Backoff::after(now, op, ledger, delay_ms, charge) };
        // Holds use up no retry, so there is no maximum to show.
        let told = Told { shared, because: Some(because), ..Told::default() };
        self.back_off(backoff, failure, told, fx);
    }
}
