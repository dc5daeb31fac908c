//! A series of calls: where its first call goes, and when.

use alloc::{format, vec::Vec};

use everturn_wire::{EventBody, Failure};

use super::{
    Turn,
    retry::{Decided, Told},
};
use crate::{
    Effects, Ledger, Millis, NextCall, Op, Schedule, Seen, Target,
    phase::{Backoff, Charge, Phase, Streaming},
};

impl Turn {
    /// Wants this call of the current target.
    pub(super) fn ask(&mut self, now: Millis, op: Op, mut ledger: Ledger) {
        ledger.target = self.target;
        self.enter(Phase::Streaming(Streaming::new(op, ledger, now)));
        self.forget_hint();
    }

    /// Begins a series of calls with this decision about the failure before it: a call at once, or after a wait that
    /// uses up no retry.
    pub(super) fn begin_series(
        &mut self,
        now: Millis,
        op: Op,
        mut ledger: Ledger,
        decided: Decided,
        failure: Failure,
        fx: &mut Effects,
    ) {
        self.carry_out(now, &mut ledger, &decided.ask, &failure, fx);
        let Decided { ask, delay_ms } = decided;
        if delay_ms == 0 && !ask.clamped {
            return self.ask(now, op, ledger);
        }
        ledger.uncounted = ledger.uncounted.saturating_add(1);
        let backoff = Backoff::until(now, op, ledger, delay_ms, Charge::of(&ask));
        self.back_off(backoff, failure, Told { clamped: ask.clamped, ..Told::default() }, fx);
    }

    /// Chooses the target of a step's first call. The schedule may return to a target that it left.
    pub(super) fn choose_first(
        &mut self,
        now: Millis,
        ledger: &Ledger,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let targets = self.targets();
        let call = NextCall { hinted: &ledger.failures, ..NextCall::new(now, self.target, targets) };
        let wished = schedule.next_target(&call);
        let (next, _) = self.soonest(now, targets, wished, &ledger.out);
        let missed = if next == wished { self.target } else { wished };
        self.move_to(next, missed, fx);
    }

    /// Chooses the target of a call after a wait: another one may have become free, or this one limited.
    pub(super) fn choose_after_wait(
        &mut self,
        now: Millis,
        ledger: &Ledger,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let call = NextCall { ledger: Some(ledger), ..NextCall::new(now, self.target, self.targets()) };
        let next = schedule.next_target(&call);
        self.move_to(next, self.target, fx);
    }

    /// Moves to a target and publishes the move. `missed` is the target that is not available.
    fn move_to(&mut self, next: usize, missed: usize, fx: &mut Effects) {
        let (Some(from), Some(to)) = (self.target_name(self.target), self.target_name(next)) else { return };
        let role = self.role();
        match next {
            _ if next == self.target => return,
            0 => fx.tell(EventBody::TargetRestored { to, role }),
            _ => {
                let missed = self.target_name(missed).unwrap_or_default();
                let reason = format!("{missed} is not available");
                fx.tell(EventBody::TargetSwitched { from, to, role, reason });
            }
        }
        self.target = next;
    }

    /// Returns the target whose hint ends first, and in how many milliseconds. Of several, returns the first from `from`
    /// on, in the order of the route.
    pub(super) fn soonest(
        &self,
        now: Millis,
        targets: &[Target],
        from: usize,
        out: &[usize],
    ) -> (usize, u64) {
        let order = (0..targets.len()).map(|offset| (from + offset) % targets.len());
        let left = order.filter(|index| !out.contains(index)).chain(targets.is_empty().then_some(from));
        let waits = left.map(|index| (index, self.hint_ms(now, targets, index)));
        waits.min_by_key(|(_, left_ms)| *left_ms).unwrap_or((from, 0))
    }

    /// Returns the rest of the hint of the target with this index, in milliseconds.
    pub(super) fn hint_ms(&self, now: Millis, targets: &[Target], index: usize) -> u64 {
        let nameless = Target::default();
        self.hints.left_ms(now, targets.get(index).unwrap_or(&nameless))
    }

    /// Returns the unexpired hints of the targets that the step asks, for a new ledger.
    pub(super) fn hinted(&self, now: Millis) -> Vec<Seen> {
        self.hints.seen(now, self.targets())
    }

    /// Returns the target that is asked, nameless if the turn has no targets.
    pub(super) fn asked(&self) -> Target {
        self.target().cloned().unwrap_or_default()
    }

    pub(super) fn forget_hint(&mut self) {
        if !self.hints.0.is_empty() {
            self.hints.forget(&self.asked());
        }
    }
}
