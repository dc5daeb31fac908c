//! Who goes next, and whether there is room.

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use super::{CONSIDERED, Target, UNKNOWN_MS};
use crate::{Because, Priority, Wait, closed::State, queue::Waiter, window::Window};

/// The shortest wait for a window, in milliseconds: rounding must not make turns ask again and again.
const LEAST_MS: u64 = 100;

impl Target {
    /// Returns when somebody may be let go next, if time alone decides.
    pub(crate) fn next_at(&mut self, now: Millis) -> Option<Millis> {
        let lapses = self.granted.values().filter_map(|ticket| self.running.get(ticket)?.lapses_at).min();
        let mut next = lapses;
        let mut sooner = |at: Millis| next = Some(next.map_or(at, |known| known.min(at)));
        for n in 0..CONSIDERED {
            let Some(waiter) = self.queue.in_order().nth(n).cloned() else { break };
            if let Some(at) = waiter.not_before.filter(|at| *at > now) {
                sooner(at);
                continue;
            }
            match self.room(&waiter, 0, now) {
                Ok(()) => sooner(now),
                Err(Wait { because: Because::Busy | Because::Probe, .. }) => break,
                Err(Wait { because: Because::Window(_), until }) if self.may_overtake() => sooner(until),
                Err(wait) => {
                    sooner(wait.until);
                    break;
                }
            }
        }
        next.map(|at| at.max(now.plus(1)))
    }

    /// Returns the turn that goes next, if there is room for it.
    pub(super) fn pick(&mut self, now: Millis) -> Option<TurnId> {
        for n in 0..CONSIDERED {
            // One at a time: mostly the first decides.
            let waiter = self.queue.in_order().nth(n)?.clone();
            if waiter.not_before.is_some_and(|at| at > now) {
                continue;
            }
            match self.room(&waiter, 0, now) {
                Ok(()) => return Some(waiter.turn),
                Err(Wait { because: Because::Window(_), .. }) if self.may_overtake() => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Whether a smaller call may use what is left of a window without delaying one that does not fit.
    fn may_overtake(&self) -> bool {
        !self.windows.iter().any(Window::refills)
    }

    /// Whether there is room for the call now, after `others`.
    pub(super) fn room(&mut self, waiter: &Waiter, others: u32, now: Millis) -> Result<(), Wait> {
        let later = |until: Millis, because| Err(Wait { until: until.max(now.plus(1)), because });
        let is_alone = self.running.is_empty() && !self.queue.has_others(&waiter.turn);
        match self.closed.state(&waiter.turn, now) {
            State::Open => {}
            State::MayProbe => return self.windows_room(waiter, others, now),
            State::Hinted(at) => return later(at, Because::Hint),
            State::Refused(at) => return later(at, Because::Refused),
            State::Probed => return later(now.plus(UNKNOWN_MS), Because::Probe),
        }
        self.windows_room(waiter, others, now)?;
        if self.windows.is_empty() {
            let learnt = self.learnt.left(now);
            if learnt.is_some_and(|left| left <= others) && !is_alone {
                return later(self.learnt.room_at(others, now), Because::Learnt);
            }
            let at = self.ramp.room_at(others.into(), now);
            if at > now && !is_alone {
                return later(at, Because::Ramp);
            }
        }
        if self.ceiling.left(self.count()).is_some_and(|left| left == 0) && !self.running.is_empty() {
            return later(now.plus(UNKNOWN_MS), Because::Busy);
        }
        Ok(())
    }

    fn windows_room(&mut self, waiter: &Waiter, others: u32, now: Millis) -> Result<(), Wait> {
        let is_background = waiter.priority == Priority::Background;
        for window in &self.windows {
            let (what, limit) = (window.what, window.limit());
            let amount = waiter.size.of(what).min(limit);
            let kept = if is_background { self.reserve.of(window, amount, now) } else { 0 };
            let needed = amount.saturating_mul(u64::from(others) + 1);
            if window.fits(needed.saturating_add(kept), now) {
                continue;
            }
            let at = match window.fits(amount, now) {
                // What is kept shrinks evenly until the window ends.
                true => now.plus(window.resets_at().since(now) * amount / kept.max(amount)),
                false => window.room_at(amount, now),
            };
            let at = at.max(now.plus(LEAST_MS));
            let until = at.plus(needed / limit * 60_000);
            return Err(Wait { until, because: Because::Window(what) });
        }
        Ok(())
    }
}
