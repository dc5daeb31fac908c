//! One gate: its state, and who may pass.

use std::collections::HashMap;

use everturn_kernel::{Hold, Millis, RequestQuota};
use everturn_wire::{ConversationId, Failure, TurnId};

use super::{slot::slot_ms, window::Window};

/// How much later than its wait ends a turn may ask before another one takes its place, in milliseconds: it is woken by a
/// timer, among others.
const GRACE_MS: u64 = 2_000;

/// How long after the first answer the gate is gone, in milliseconds: by then half a million turns were let through.
const OPENED_MS: u64 = 20_000;

/// What is known of a target that cannot be asked by everyone.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) state: State,
    pub(super) why: Why,
    /// When it was closed. Calls from before say nothing about how the target does now.
    pub(super) closed_at: Millis,
    /// Turns that were put off since the state began: the next one comes after them.
    pub(super) put_off: u32,
    /// Calls in a row that reached nobody.
    pub(super) misses: u32,
    /// Whose turns wait for its end, each with its place in the row; once it answers early, who is let go of.
    pub(super) waiting: HashMap<ConversationId, u32>,
    /// How many requests the provider allows in a window, where it says so.
    pub(super) limit: Option<u32>,
    /// What is left of them, while it opens.
    pub(super) window: Option<Window>,
}

#[derive(Debug)]
pub(super) enum State {
    /// Nobody asks before this moment; then this turn does.
    Closed { until: Millis, first: TurnId },
    /// This turn asks.
    Probing { turn: TurnId },
    /// It answers again: more and more turns are let through.
    Opening { since: Millis, let_go: u32 },
}

/// What keeps turns from asking.
#[derive(Clone, Debug)]
pub(super) struct Why {
    pub(super) failure: Failure,
    /// When the provider said that the limit is over: true whatever becomes of the turn that was refused.
    pub(super) hint_ends: Option<Millis>,
    /// There is no network: its waits cost nothing.
    pub(super) is_offline: bool,
}

pub(super) enum Entered {
    Go,
    /// And nobody needs the gate any more.
    Gone,
    Wait(Millis),
}

impl Gate {
    pub(super) fn enter(&mut self, turn: &TurnId, now: Millis) -> Entered {
        match &mut self.state {
            State::Closed { until, first } if now < *until => {
                let until = *until;
                match turn == first {
                    true => Entered::Wait(until),
                    false => Entered::Wait(until.plus(self.next_slot())),
                }
            }
            State::Closed { until, first } if turn != first && !first.as_str().is_empty() => {
                let gives_up_at = until.plus(GRACE_MS);
                if now < gives_up_at {
                    return Entered::Wait(gives_up_at.plus(self.next_slot()));
                }
                self.state = State::Probing { turn: turn.clone() };
                Entered::Go
            }
            State::Closed { .. } => {
                self.state = State::Probing { turn: turn.clone() };
                Entered::Go
            }
            State::Probing { .. } => Entered::Wait(now.plus(self.next_slot())),
            State::Opening { since, let_go } => {
                let since_ms = now.since(*since);
                if since_ms >= OPENED_MS && self.window.as_ref().is_none_or(|window| window.sufficed(now)) {
                    return Entered::Gone;
                }
                // Two in the first second, and in each one twice as many as before.
                let room = 2_u32 << (since_ms / 1_000).min(30);
                if *let_go >= room {
                    return Entered::Wait(now.plus(self.next_slot()));
                }
                if self.window.as_mut().is_none_or(|window| window.take(now)) {
                    *let_go += 1;
                    return Entered::Go;
                }
                self.wait_for_window(now)
            }
        }
    }

    /// Puts a turn off until the provider allows requests again, behind those that already wait for that.
    fn wait_for_window(&mut self, now: Millis) -> Entered {
        let Some(window) = &mut self.window else { return Entered::Go };
        let ends_at = window.ends_at();
        if window.put_off() == 1 {
            self.put_off = 0;
        }
        Entered::Wait(ends_at.max(now).plus(self.next_slot()))
    }

    /// It opens: the window is the one that its answer tells of.
    pub(super) fn begin_window(&mut self, quota: Option<RequestQuota>, now: Millis) {
        self.limit = quota.and_then(|quota| quota.limit).or(self.limit);
        self.window = match quota {
            Some(quota) => Some(Window::told(quota, now)),
            None => self.limit.map(|limit| Window::assumed(limit, now)),
        };
    }

    /// Another answer came while it opens.
    pub(super) fn hear(&mut self, quota: Option<RequestQuota>, now: Millis) {
        let Some(quota) = quota else { return };
        self.limit = quota.limit.or(self.limit);
        match &mut self.window {
            Some(window) => window.hear(quota, now),
            None => self.window = Some(Window::told(quota, now)),
        }
    }

    fn next_slot(&mut self) -> u64 {
        self.put_off = self.put_off.saturating_add(1);
        slot_ms(self.put_off)
    }
}

impl Why {
    pub(super) fn hold(&self, wait_ms: u64, shared: bool) -> Box<Hold> {
        Box::new(Hold { failure: self.failure.clone(), wait_ms, shared, in_budget: !self.is_offline })
    }
}
