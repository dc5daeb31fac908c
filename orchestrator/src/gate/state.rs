//! One gate: its state, and who may pass.

use std::collections::HashMap;

use everturn_kernel::{Hold, Millis};
use everturn_wire::{ConversationId, Failure, TurnId};

use super::slot::slot_ms;

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
            State::Opening { since, .. } if now.since(*since) >= OPENED_MS => Entered::Gone,
            State::Opening { since, let_go } => {
                // Two in the first second, and in each one twice as many as before.
                let room = 2_u32 << (now.since(*since) / 1_000).min(30);
                if *let_go < room {
                    *let_go += 1;
                    return Entered::Go;
                }
                Entered::Wait(now.plus(self.next_slot()))
            }
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
