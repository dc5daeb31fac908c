//! Who goes next, whatever targets turns wait for. Looks only at targets where somebody waits.

use alloc::{borrow::ToOwned, vec::Vec};

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use super::Pacer;
use crate::{
    Call,
    target::{Next, Target},
};

impl Pacer {
    /// Returns turns whose wait is over, in order: as many as may go, or, if these are more than `enough`, at least that many. A
    /// call is reserved for each for 5 s.
    pub fn let_go(&mut self, enough: usize, now: Millis) -> Vec<TurnId> {
        self.renew(now);
        let Self { targets, busy, callers, .. } = self;
        let mut nexts: Vec<_> = busy.values().map(|at| targets[*at].next(callers, now)).collect();
        let mut released = Vec::new();
        // Targets take turns, so that none waits until all turns of another have gone.
        while released.len() < enough && nexts.iter().any(Option::is_some) {
            for (n, at) in busy.values().enumerate() {
                let Some(next) = nexts[n].take() else { continue };
                let is_limited = callers.is_limited(next.caller.as_ref());
                if is_limited && nexts.iter().flatten().any(|other| other.goes_before(&next)) {
                    nexts[n] = Some(next);
                    continue;
                }
                targets[*at].let_go(&next.turn, callers, now);
                nexts[n] = targets[*at].next(callers, now);
                // Its caller may have less left.
                for (at, known) in busy.values().zip(&mut nexts) {
                    if is_limited && known.as_ref().is_some_and(|known| known.caller == next.caller) {
                        *known = targets[*at].next(callers, now);
                    }
                }
                released.push(next.turn);
            }
        }
        released
    }

    /// Returns when to call [`let_go`](Self::let_go) again if nothing happens before; `None` if nobody waits for time to pass.
    pub fn next_at(&mut self, now: Millis) -> Option<Millis> {
        let Self { targets, busy, callers, .. } = self;
        busy.values().filter_map(|at| targets[*at].next_at(callers, now)).min()
    }

    /// Whether a call of the same caller, to another target, may go and goes first.
    pub(super) fn is_behind(&mut self, target: &str, call: &Call<'_>, now: Millis) -> bool {
        self.renew(now);
        let Self { targets, busy, callers, .. } = self;
        if busy.keys().all(|name| name == target) {
            return false;
        }
        let own = Next::new(call.turn.clone(), call.caller.cloned(), call.priority, call.since, callers);
        let mut others = busy.iter().filter(|(name, _)| *name != target);
        others.any(|(_, at)| targets[*at].next(callers, now).is_some_and(|next| next.goes_before(&own)))
    }

    /// A turn waits for one target at a time.
    pub(super) fn leave_others(&mut self, target: &str, turn: &TurnId) {
        let Self { targets, busy, callers, .. } = self;
        busy.retain(|name, at| {
            if name != target {
                targets[*at].leave(turn, callers);
            }
            !targets[*at].is_idle()
        });
    }

    /// Somebody waits for the target.
    pub(super) fn becomes_busy(&mut self, target: &str) {
        if let Some(at) = self.names.get(target).filter(|_| !self.busy.contains_key(target)) {
            self.busy.insert(target.to_owned(), *at);
        }
    }

    /// Takes note of windows that began anew, wherever they are.
    fn renew(&mut self, now: Millis) {
        if self.renews_at.is_some_and(|at| at <= now) {
            self.targets.iter_mut().for_each(|target| target.renew(now));
            self.renews_at = self.targets.iter().filter_map(Target::renews_at).min();
        }
    }
}
