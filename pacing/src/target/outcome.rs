//! What became of a call, and what that says about the target.

use alloc::collections::VecDeque;

use everturn_kernel::Millis;
use everturn_wire::{Category, Failure, TurnId};

use super::{Running, Target};
use crate::{Call, Limits, Ticket, ceiling::Verdict, queue::Waiter, window::Window};

impl Target {
    /// The provider accepted the call. `limits`: what its response reports.
    pub(crate) fn heard(&mut self, ticket: Ticket, limits: &Limits, now: Millis) {
        let Some(running) = self.running.get_mut(&ticket) else { return };
        running.is_accepted = true;
        self.hear(ticket, limits, now);
        if self.closed.accepted(ticket) {
            self.ramp.restart();
            self.queue.open();
        }
        let accepted = self.running.values().filter(|running| running.is_accepted).count();
        self.ceiling.accepted(ticket, u32::try_from(accepted).unwrap_or(u32::MAX), self.last);
    }

    /// The provider refused the call, or it failed. `retry_at`: when its turn asks again.
    pub(crate) fn refused(
        &mut self,
        ticket: Ticket,
        failure: &Failure,
        limits: &Limits,
        retry: Option<(&Call<'_>, Millis)>,
        now: Millis,
    ) {
        let Some(running) = self.running.remove(&ticket) else { return };
        self.windows.iter_mut().for_each(|window| window.take_back(ticket));
        self.learnt.take_back(running.at);
        self.hear(ticket, limits, now);
        match failure.category {
            Category::RateLimited => self.limited(ticket, &running, failure.hint_ms, now),
            Category::Overloaded => {
                if running.beside > 0 && !self.closed.is_probe(ticket) {
                    self.ceiling.overloaded(ticket, running.beside, self.last);
                    return self.waits(retry);
                }
                self.close(ticket, &running.turn, failure.hint_ms, None, now);
            }
            // Says nothing about limits.
            _ => {
                if self.closed.accepted(ticket) {
                    self.ramp.restart();
                    self.queue.open();
                }
            }
        }
        self.waits(retry);
    }

    /// Puts a refused turn back in line.
    fn waits(&mut self, retry: Option<(&Call<'_>, Millis)>) {
        let Some((Call { turn, since, priority, size }, at)) = retry else { return };
        let waiter = Waiter { turn: (*turn).clone(), priority: *priority, size: *size, not_before: Some(at) };
        self.queue.wait(waiter, *since);
    }

    fn limited(&mut self, ticket: Ticket, call: &Running, hint_ms: Option<u64>, now: Millis) {
        let turn = &call.turn;
        if !self.windows.is_empty() && self.windows.iter().any(|window| window.left(now) == 0) {
            // The reported limit explains it.
            let room_at = self.windows.iter().map(|window| window.room_at(1, now)).max();
            return self.close(ticket, turn, hint_ms, room_at, now);
        }
        let may_be_busy = hint_ms.is_none() && !self.closed.is_probe(ticket);
        if may_be_busy && self.ceiling.refused(ticket, call.beside, self.last) == Verdict::Busy {
            return;
        }
        if self.closed.knows(ticket) {
            return self.closed.refused_too(hint_ms, now);
        }
        let room_at = if self.windows.is_empty() { self.learnt.refused(hint_ms, now) } else { None };
        self.close(ticket, turn, hint_ms, room_at, now);
    }

    fn close(
        &mut self,
        ticket: Ticket,
        turn: &TurnId,
        hint_ms: Option<u64>,
        room_at: Option<Millis>,
        now: Millis,
    ) {
        match self.closed.knows(ticket) {
            true => self.closed.refused_too(hint_ms, now),
            false => self.closed.refused(turn, self.last, hint_ms, room_at, now),
        }
    }

    pub(super) fn hear(&mut self, ticket: Ticket, limits: &Limits, now: Millis) {
        for told in &limits.0 {
            match self.windows.iter_mut().find(|window| window.what == told.what) {
                Some(window) => window.hear(*told, ticket, now),
                None => {
                    self.learnt.forget();
                    let later = self.running.iter().filter(|(later, _)| **later > ticket);
                    let since: VecDeque<_> =
                        later.map(|(later, running)| (*later, running.size.of(told.what))).collect();
                    let mut window = Window::new(*told, ticket, since, now);
                    window.share(self.share, now);
                    self.windows.push(window);
                }
            }
        }
    }
}
