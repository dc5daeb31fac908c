//! What became of a call, and what that says about the target.

use alloc::collections::VecDeque;

use everturn_kernel::Millis;
use everturn_wire::{Category, Failure};

use super::{Running, Target};
use crate::{
    Call, Limits, Size, Ticket,
    caller::Callers,
    ceiling::{Ceiling, Verdict},
    noise::Finding,
    window::Window,
};

/// A call that is accepted within the first sixteenth of the wait for room shows that there was room. Later ones may be accepted
/// because a bucket was refilled bit by bit.
const EARLY: u64 = 16;

impl Target {
    /// The provider accepted the call. `limits`: what its response reports.
    pub(crate) fn heard(&mut self, ticket: Ticket, limits: &Limits, now: Millis) {
        self.answered_at = Some(now);
        let Some(running) = self.room.running.get_mut(&ticket) else { return };
        let made_at = running.at;
        if !running.is_accepted {
            running.is_accepted = true;
            self.room.accepted += 1;
            let (mine, all) = self.share;
            if mine == all {
                self.room.ramp.accepted();
            }
        }
        self.hear(ticket, limits, now);
        match self.room.noise.accepted(ticket, made_at, now) {
            Finding::Nothing => {}
            Finding::Doubt => self.room.learnt.undo(),
            Finding::Noise => self.is_noisy(),
        }
        self.answers(ticket, limits, now);
        self.room.ceiling.accepted(ticket, self.room.accepted, self.last);
    }

    /// The provider refused the call, or it failed.
    pub(crate) fn refused(
        &mut self,
        ticket: Ticket,
        failure: &Failure,
        limits: &Limits,
        callers: &mut Callers,
        now: Millis,
    ) {
        let Some(running) = self.room.remove(ticket) else { return };
        self.room.uncount(ticket, &running);
        match failure.category {
            Category::RateLimited | Category::Overloaded => {
                callers.give_back(running.caller.as_ref(), running.size, running.at);
            }
            // It was a request, but nothing was answered.
            _ => callers.ended(running.caller.as_ref(), running.size, Some(Size::default()), running.at),
        }
        self.hear(ticket, limits, now);
        let is_probe = self.room.closed.is_probe(ticket);
        match failure.category {
            Category::RateLimited => self.limited(ticket, &running, failure.hint_ms, now),
            Category::Overloaded if is_probe => {
                if self.room.closed.is_hint_over() {
                    self.disbelieve(limits, now);
                }
                self.close(ticket, &running, failure.hint_ms, None, now);
            }
            // A provider that is overloaded may refuse one call in ten, so others may ask, but not more at once.
            Category::Overloaded => self.overloaded(ticket, &running, now),
            // Says nothing about limits.
            _ => self.answers(ticket, limits, now),
        }
        // If it was a probe that found out nothing, the next turn is.
        self.room.closed.left(ticket);
    }

    /// The call reached nobody because this machine has no network. Its turn goes back in line. Returns when the next turn
    /// may look for the network.
    pub(crate) fn unreached(
        &mut self,
        ticket: Ticket,
        call: &Call<'_>,
        callers: &mut Callers,
        now: Millis,
    ) -> Millis {
        if let Some(running) = self.room.remove(ticket) {
            self.room.uncount(ticket, &running);
            callers.give_back(running.caller.as_ref(), running.size, running.at);
        }
        self.line_up(call);
        self.room.closed.left(ticket);
        self.room.closed.unreached(self.last, now)
    }

    /// When the call was made.
    pub(crate) fn asked_at(&self, ticket: Ticket) -> Option<Millis> {
        self.room.running.get(&ticket).map(|running| running.at)
    }

    /// A call was not refused: if it was made after a refusal, that is over.
    fn answers(&mut self, ticket: Ticket, limits: &Limits, now: Millis) {
        let was_hinted = self.room.closed.is_hint_over();
        if !self.room.closed.accepted(ticket) {
            return;
        }
        if !self.room.noise.is_noisy(now) {
            self.room.ramp.restart();
        }
        if was_hinted {
            self.disbelieve(limits, now);
        }
    }

    /// A call made after a hint was not refused for a limit: the hint was right, so a limit that only the refusal reported
    /// was not.
    fn disbelieve(&mut self, limits: &Limits, now: Millis) {
        if limits.0.is_empty() {
            self.room.windows.retain(|window| window.left(now) > 0);
        }
    }

    /// A provider that is overloaded may refuse one call in ten, so others may ask, but not more at once.
    fn overloaded(&mut self, ticket: Ticket, call: &Running, now: Millis) {
        let room = &mut self.room;
        room.noise.refused(ticket, call.at, call.beside, None);
        if call.beside == 0 || room.noise.is_noisy(now) {
            return;
        }
        if room.ceiling.overloaded(ticket, call.beside, self.last) && room.noise.doubt(now) == Finding::Noise
        {
            self.is_noisy();
        }
    }

    /// Refusals say nothing about limits from now on, so what they taught is forgotten.
    fn is_noisy(&mut self) {
        self.room.learnt.forget();
        self.room.ceiling = Ceiling::default();
        self.room.ramp.restart();
    }

    fn limited(&mut self, ticket: Ticket, call: &Running, hint_ms: Option<u64>, now: Millis) {
        let room = &mut self.room;
        if room.windows.iter().any(|window| window.left(now) == 0) {
            // The reported limit explains it.
            let room_at = room.windows.iter().map(|window| window.room_at(1, now)).max();
            return self.close(ticket, call, hint_ms, room_at, now);
        }
        let is_probe = room.closed.is_probe(ticket);
        let no_room_before = room.learnt.no_room_before(call.at);
        let confirms = room.noise.refused(ticket, call.at, call.beside, no_room_before);
        if room.noise.is_noisy(now) {
            if hint_ms.is_some() || is_probe {
                self.close(ticket, call, hint_ms, None, now);
            }
            return;
        }
        let may_be_busy = hint_ms.is_none() && !is_probe;
        if may_be_busy && room.ceiling.refused(ticket, call.beside, self.last) == Verdict::Busy {
            return;
        }
        if room.closed.knows(ticket) {
            return room.closed.refused_too(hint_ms, now);
        }
        let room_at = match room.windows.is_empty() {
            true if confirms => Some(room.learnt.room_at(0, now)),
            true => room.learnt.refused(hint_ms, now),
            false => None,
        };
        if let Some(at) = room_at.filter(|_| !confirms) {
            room.noise.learnt(now.plus(at.since(now) / EARLY));
        }
        // One call finds out early whether the limit explains it.
        let is_doubtful = hint_ms.is_none() && !room.noise.is_in_a_row();
        let room_at = no_room_before.filter(|at| is_doubtful && *at > now).or(room_at);
        self.close(ticket, call, hint_ms, room_at, now);
    }

    fn close(
        &mut self,
        ticket: Ticket,
        call: &Running,
        hint_ms: Option<u64>,
        room_at: Option<Millis>,
        now: Millis,
    ) {
        let closed = &mut self.room.closed;
        match closed.knows(ticket) {
            true => closed.refused_too(hint_ms, now),
            false => closed.refused(&call.turn, self.last, hint_ms, room_at, now),
        }
    }

    fn hear(&mut self, ticket: Ticket, limits: &Limits, now: Millis) {
        let room = &mut self.room;
        for told in &limits.0 {
            match room.windows.iter_mut().find(|window| window.what == told.what) {
                Some(window) => window.hear(*told, ticket, now),
                None => {
                    room.learnt.forget();
                    let made = room.running.iter().filter(|(_, call)| !call.is_reserved);
                    let later = made.filter(|(later, _)| **later > ticket);
                    let since: VecDeque<_> =
                        later.map(|(later, call)| (*later, call.size.of(told.what))).collect();
                    let mut window = Window::new(*told, ticket, since, now);
                    let reserved = room.running.values().filter(|call| call.is_reserved);
                    reserved.for_each(|call| window.reserve(call.size.of(told.what)));
                    window.share(self.share, now);
                    room.windows.push(window);
                }
            }
        }
    }
}
