//! One gate: its state, and which turns it admits.

use std::collections::HashMap;

use everturn_kernel::{Hold, Millis};
use everturn_wire::{ConversationId, Failure, TurnId};

use super::{
    slot::slot_ms,
    window::{RequestQuota, Window},
};

/// How late after its wait a turn may ask before another takes its place, in milliseconds: the timer that wakes it also
/// wakes others.
const GRACE_MS: u64 = 2_000;

/// How long after the first answer the gate is removed, in milliseconds: by then, half a million turns were admitted.
const OPENED_MS: u64 = 20_000;

/// What is known about a target that not every turn may call.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) state: State,
    pub(super) why: Why,
    /// Who found out about its state.
    pub(super) source: Source,
    /// When it was closed. Earlier calls say nothing about the target's current state.
    pub(super) closed_at: Millis,
    /// Number of turns put off since the state began: the next one comes after them.
    pub(super) put_off: u32,
    /// Number of consecutive calls that reached nobody.
    pub(super) misses: u32,
    /// Conversations whose turns wait for the gate, each with its place in line; after an early answer, those that may
    /// stop waiting.
    pub(super) waiting: HashMap<ConversationId, u32>,
    /// How many requests the provider allows per window, if it says so.
    pub(super) limit: Option<u32>,
    /// What is left of that limit, while the gate opens.
    pub(super) window: Option<Window>,
}

/// Who found out about the state of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A turn of this node. Other nodes are told.
    Here,
    /// An earlier process.
    Saved,
    /// A turn of another node, which said so last at this time.
    Heard(Millis),
}

#[derive(Debug)]
pub(super) enum State {
    /// No turn asks before `until`; then the turn `first` does.
    Closed { until: Millis, first: TurnId },
    /// This turn is asking.
    Probing { turn: TurnId },
    /// The target answers again: more and more turns are admitted.
    Opening { since: Millis, let_go: u32 },
}

/// Why turns may not ask.
#[derive(Clone, Debug)]
pub(super) struct Why {
    pub(super) failure: Failure,
    /// When the limit ends according to the provider: valid whatever becomes of the refused turn.
    pub(super) hint_ends: Option<Millis>,
    /// Whether there is no network. Such waits use up no budget.
    pub(super) is_offline: bool,
}

pub(super) enum Entered {
    Go,
    /// Go; the gate is no longer needed.
    Gone,
    Wait(Millis),
}

impl Gate {
    pub(super) fn enter(&mut self, turn: &TurnId, now: Millis) -> Entered {
        if self.is_outdated(now) {
            return self.probe(turn);
        }
        let soon = self.believed_until(now);
        match &mut self.state {
            State::Closed { until, first } if now < *until => {
                let until = (*until).min(soon);
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
                self.probe(turn)
            }
            State::Closed { .. } => self.probe(turn),
            State::Probing { .. } => Entered::Wait(now.plus(self.next_slot())),
            State::Opening { since, let_go } => {
                let since_ms = now.since(*since);
                if since_ms >= OPENED_MS && self.window.as_ref().is_none_or(|window| window.sufficed(now)) {
                    return Entered::Gone;
                }
                // Two in the first second; the total doubles each second.
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

    /// Lets this turn find out whether the target answers again.
    fn probe(&mut self, turn: &TurnId) -> Entered {
        (self.state, self.source) = (State::Probing { turn: turn.clone() }, Source::Here);
        Entered::Go
    }

    /// Puts a turn off until the provider allows requests again, after those that already wait for that.
    fn wait_for_window(&mut self, now: Millis) -> Entered {
        let Some(window) = &mut self.window else { return Entered::Go };
        let ends_at = window.ends_at();
        if window.put_off() == 1 {
            self.put_off = 0;
        }
        Entered::Wait(ends_at.max(now).plus(self.next_slot()))
    }

    /// Starts the window that the first answer reports, as the gate opens.
    pub(super) fn begin_window(&mut self, quota: Option<RequestQuota>, now: Millis) {
        self.limit = quota.and_then(|quota| quota.limit).or(self.limit);
        self.window = match quota {
            Some(quota) => Some(Window::told(quota, now)),
            None => self.limit.map(|limit| Window::assumed(limit, now)),
        };
    }

    /// Updates the window from another answer, while the gate opens.
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
