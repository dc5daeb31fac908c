//! Whether there is room for a call.

use alloc::{collections::BTreeMap, vec::Vec};

use everturn_kernel::Millis;

use super::{Running, UNKNOWN_MS};
use crate::{
    Because, Priority, Size, Ticket, Wait, What,
    ceiling::Ceiling,
    closed::{Closed, State},
    learnt::Learnt,
    noise::Noise,
    queue::{Queue, USUAL_COST, WHOLE, Waiter},
    ramp::{Ramp, reached_ms},
    reserve::Reserve,
    window::Window,
};

/// The shortest wait for a window, in milliseconds: rounding must not make turns ask again and again.
const LEAST_MS: u64 = 100;

/// How long it usually takes to find out whether a target answers again, in milliseconds. Only for the wait that others are
/// told: they are let go as soon as it does.
const PROBED_MS: u64 = 2_000;

/// What is known of a target's limits, and the calls that run.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) windows: Vec<Window>,
    pub(super) learnt: Learnt,
    pub(super) ceiling: Ceiling,
    pub(super) noise: Noise,
    pub(crate) closed: Closed,
    pub(super) ramp: Ramp,
    pub(super) reserve: Reserve,
    pub(super) running: BTreeMap<Ticket, Running>,
    /// How many of them the provider accepted.
    pub(super) accepted: u32,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            windows: Vec::new(),
            learnt: Learnt::new(),
            ceiling: Ceiling::default(),
            noise: Noise::new(),
            closed: Closed::default(),
            ramp: Ramp::default(),
            reserve: Reserve::new(),
            running: BTreeMap::new(),
            accepted: 0,
        }
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Removes a call that is over.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Running> {
        let running = self.running.remove(&ticket)?;
        self.accepted -= u32::from(running.is_accepted);
        Some(running)
    }

    /// Takes back what a call would have used up, because it was never made.
    pub(super) fn give_back(&mut self, ticket: Ticket) -> Option<Running> {
        let running = self.remove(ticket)?;
        self.uncount(ticket, &running);
        self.closed.left(ticket);
        Some(running)
    }

    /// A call that was kept for its turn is made, under this ticket.
    pub(super) fn redeem(&mut self, granted: Ticket, ticket: Ticket) {
        let Some(running) = self.running.remove(&granted) else { return };
        for window in &mut self.windows {
            window.take_reserved(ticket, running.size.of(window.what));
        }
        if self.closed.is_probe(granted) {
            self.closed.probes(ticket, running.at);
        }
        self.running.insert(ticket, Running { is_reserved: false, ..running });
    }

    /// Takes back what a call was counted for.
    pub(super) fn uncount(&mut self, ticket: Ticket, call: &Running) {
        for window in &mut self.windows {
            match call.is_reserved {
                true => window.give_back(call.size.of(window.what)),
                false => window.take_back(ticket),
            }
        }
        self.learnt.take_back(call.at);
    }

    /// Whether a smaller call may use what is left of a window without delaying one that does not fit.
    pub(super) fn may_overtake(&self) -> bool {
        !self.windows.iter().any(Window::refills)
    }

    /// Returns which share of what is scarce a call of this size uses up.
    pub(super) fn cost(&self, size: Size) -> u64 {
        let share = |window: &Window| size.of(window.what).saturating_mul(WHOLE) / window.limit();
        self.windows.iter().map(share).max().unwrap_or(USUAL_COST).clamp(1, WHOLE)
    }

    /// Returns until when a caller leaves what is left to others; `None` = it need not.
    pub(super) fn kept_until(&self, waiter: &Waiter, queue: &Queue, now: Millis) -> Option<Millis> {
        let until = |window: &Window| {
            let amount = amount(waiter.size, window);
            let kept = self.reserve.for_callers(waiter, queue, window, amount, now);
            (kept > 0 && window.fits(amount, now) && !window.fits(amount.saturating_add(kept), now))
                .then(|| shrunk_at(window, amount, kept, now))
        };
        self.windows.iter().filter_map(until).max()
    }

    /// Whether there is room for the call now, after `others`. `has_others`: whether other turns wait.
    pub(super) fn check(
        &mut self,
        waiter: &Waiter,
        others: u32,
        has_others: bool,
        now: Millis,
    ) -> Result<(), Wait> {
        let later = |until: Millis, because| Err(Wait { until: until.max(now.plus(1)), because });
        // Those behind the first one wait for its outcome, and then for each other.
        let behind_ms = if others > 0 { PROBED_MS + reached_ms(others.into()) } else { 0 };
        let is_alone = self.running.is_empty() && !has_others;
        match self.closed.state(&waiter.turn, now) {
            State::Open => {}
            // A lone turn is not held by what its own refusal reports, if that also says when to ask again.
            State::MayProbe if is_alone && self.closed.is_hint_over() => return Ok(()),
            State::MayProbe => return self.check_windows(waiter, others, now),
            State::Hinted(at) => return later(at.plus(behind_ms), self.closed.because(Because::Hint)),
            State::Refused(at) => return later(at.plus(behind_ms), Because::Refused),
            State::Probed => {
                return later(now.plus(UNKNOWN_MS + behind_ms), self.closed.because(Because::Probe));
            }
        }
        self.check_windows(waiter, others, now)?;
        if self.windows.is_empty() {
            let learnt = self.learnt.left(now);
            if learnt.is_some_and(|left| left <= others) && !is_alone {
                return later(self.learnt.room_at(others, now), Because::Rate);
            }
            let at = self.ramp.room_at(others.into(), now);
            if at > now && !is_alone {
                return later(at, Because::Ramp);
            }
        }
        if self.ceiling.left(self.count()).is_some_and(|left| left == 0) && !self.running.is_empty() {
            return later(now.plus(UNKNOWN_MS), Because::Concurrency);
        }
        Ok(())
    }

    fn check_windows(&mut self, waiter: &Waiter, others: u32, now: Millis) -> Result<(), Wait> {
        let is_background = waiter.priority == Priority::Background;
        for window in &self.windows {
            let (what, limit) = (window.what, window.limit());
            let amount = amount(waiter.size, window);
            let kept = if is_background { self.reserve.of(window, amount, now) } else { 0 };
            let needed = amount.saturating_mul(u64::from(others) + 1);
            if window.fits(needed.saturating_add(kept), now) {
                continue;
            }
            let at = match window.fits(amount, now) {
                true => shrunk_at(window, amount, kept, now),
                false => window.room_at(amount, now),
            };
            let at = at.max(now.plus(LEAST_MS));
            let until = at.plus(needed.saturating_sub(1) / limit * 60_000);
            let because = if what == What::Requests { Because::Requests } else { Because::Tokens };
            return Err(Wait { until, because });
        }
        Ok(())
    }
}

/// Returns how much a call needs of a window. One that is refilled all the time is hardly ever whole, so a call that needs all of
/// it goes with nearly all; so does one that is larger, which the provider may still take.
fn amount(size: Size, window: &Window) -> u64 {
    let (size, limit) = (size.of(window.what), window.limit());
    let is_nearly_enough = size > limit || window.refills();
    size.min(if is_nearly_enough { limit - limit / 10 } else { limit })
}

/// When what is kept of a window has shrunk by an amount: it shrinks evenly until the window ends.
fn shrunk_at(window: &Window, amount: u64, kept: u64, now: Millis) -> Millis {
    now.plus((window.resets_at().since(now) * amount / kept.max(amount).max(1)).max(LEAST_MS))
}
