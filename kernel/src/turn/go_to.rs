//! A person moves a waiting turn to another of its targets, or to another turn.

use everturn_wire::{EventBody, TargetRole};

use super::Turn;
use crate::{Effects, Millis, phase::Phase};

/// Published reason for the switch.
const CHOSEN: &str = "chosen by a person";
/// Published reason for the end of the retries when another turn replaces this one.
const MOVED: &str = "Moved to another model by a person";

impl Turn {
    /// Handles a person who skips the wait and chooses the next target.
    pub(super) fn on_go_to(&mut self, now: Millis, target: usize, fx: &mut Effects) {
        if !self.takes_retry_now() || self.settings.targets.get(target).is_none() {
            return;
        }
        if self.asks_others() {
            // The target is one of the turn's own, which cannot be asked for a summary.
            return self.on_retry_now(now, fx);
        }
        let (Some(from), Some(to)) = (self.target_name(self.target), self.target_name(target)) else {
            return;
        };
        let ledger = match &mut self.phase {
            Phase::Streaming(streaming) => &mut streaming.ledger,
            Phase::Backoff(backoff) => &mut backoff.ledger,
            Phase::Tools(_) | Phase::Sealed(_) => return,
        };
        ledger.target = target;
        // The person may know that it works again.
        ledger.out.retain(|out| *out != target);
        if target != self.target {
            let reason = CHOSEN.into();
            fx.tell(EventBody::TargetSwitched { from, to, role: TargetRole::Main, reason });
        }
        (self.target, self.is_chosen) = (target, true);
        self.on_retry_now(now, fx);
    }

    /// Handles a person who replaces this turn with another.
    pub(super) fn on_move_away(&mut self, now: Millis, fx: &mut Effects) {
        if self.takes_retry_now() {
            // The other turn answers from the start.
            self.withdrawn.clear();
            self.abort(now, Some(MOVED), fx);
        }
    }
}
