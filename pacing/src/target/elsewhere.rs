//! What other processes know of the target: an earlier one, or those beside this one.

use alloc::collections::VecDeque;

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use super::Target;
use crate::{Lately, Told, closed::Closed, saved::Known, window::Window};

impl Target {
    pub(crate) fn refused_elsewhere(
        &mut self,
        turn: &TurnId,
        at: Millis,
        hint_ms: Option<u64>,
        probe_ms: u64,
        now: Millis,
    ) {
        // If it has answered since, the other one has not heard of that.
        if self.answered_at.is_none_or(|answered| answered <= at) {
            self.room.closed.refused_elsewhere(turn, at, hint_ms, probe_ms, self.last, now);
        }
    }

    pub(crate) fn probed_elsewhere(&mut self, now: Millis) {
        self.room.closed.probed_elsewhere(now);
    }

    pub(crate) fn accepted_elsewhere(&mut self, asked_at: Millis) {
        if self.room.closed.accepted_elsewhere(asked_at) {
            self.room.ramp.restart();
        }
    }

    pub(crate) fn lately(&mut self, now: Millis) -> Lately {
        self.room.learnt.lately(now)
    }

    pub(crate) fn lately_elsewhere(&mut self, lately: Lately, now: Millis) {
        self.room.learnt.lately_elsewhere(lately, now);
    }

    /// What is worth keeping for the next process.
    pub(crate) fn known(&self, now: Millis) -> Known {
        let closed = &self.room.closed;
        // A call that is finding out is lost with its process.
        let probe_at = if closed.is_probed(now) { Some(now) } else { closed.probe_at };
        let limits = self.room.windows.iter().map(|window| {
            let (limit, reset_ms) = (Some(window.limit()), window.resets_at().since(now));
            Told { what: window.what, limit, remaining: window.left(now), reset_ms }
        });
        Known {
            at: now,
            answered_at: self.answered_at,
            closed_at: probe_at.map(|_| closed.closed_at()),
            hint_ends: closed.hint_ends,
            probe_at,
            refused: closed.refused.clone(),
            is_offline: closed.is_offline,
            misses: closed.misses,
            limits: limits.collect(),
        }
    }

    pub(crate) fn restore(&mut self, known: &Known, is_recent: impl Fn(Millis) -> bool, now: Millis) {
        self.answered_at = known.answered_at.filter(|at| is_recent(*at)).max(self.answered_at);
        if let Some((closed_at, probe_at)) = known.closed_at.zip(known.probe_at)
            && is_recent(closed_at.max(probe_at))
        {
            self.room.closed = Closed::restored(known, closed_at, probe_at);
        }
        for told in &known.limits {
            // A window that ended meanwhile is whole.
            let age_ms = now.since(known.at);
            let told = Told { reset_ms: told.reset_ms.saturating_sub(age_ms), ..*told };
            let mut window = Window::new(told, self.last, VecDeque::new(), now);
            window.share(self.share, now);
            self.room.windows.push(window);
        }
    }
}
