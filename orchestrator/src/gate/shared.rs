//! Gates and other nodes: what this node tells them about its gates, and what it makes of what they tell.
//!
//! A limit that another node tells about is heeded like one that refused a turn here, and its turn asks first. If the provider
//! said when the limit ends, that is believed. Otherwise the node repeats the notice as long as it waits: if it falls silent,
//! the next turn here asks, as if nothing had been told.

use std::collections::HashMap;

use everturn_kernel::Millis;
use everturn_wire::{ConversationId, TurnId};

use super::{
    Gates, Inner,
    state::{Gate, Source, State, Why},
};
use crate::notice::{Closed, Notice, ago, brief};

/// How long a notice is believed unless it is repeated, in milliseconds: five times the interval at which that happens.
const BELIEVED_MS: u64 = 15_000;

/// Waits that differ by no more than this, in milliseconds, are as long as each other: notices take some time.
const AS_LONG_MS: u64 = 1_000;

/// The longest wait for a limit whose end only another node decides, in milliseconds. Then the turn looks again: the notice
/// that the limit is over may have been lost.
const LOOK_AGAIN_MS: u64 = 60_000;

impl Gates {
    /// Applies a notice of another node about a target that this one has. Returns which conversations need not wait any
    /// longer, and when to wake each.
    pub(crate) fn hear(&self, notice: Notice, now: Millis) -> Vec<(Millis, ConversationId)> {
        let mut inner = self.lock();
        let released = match notice {
            Notice::Closed(closed) => {
                inner.hear_closed(closed, now);
                Vec::new()
            }
            Notice::Probing { target, turn } => {
                inner.hear_probing(&target, turn, now);
                Vec::new()
            }
            Notice::Opened { target, asked_ms_ago } => inner.open(&target, ago(now, asked_ms_ago), None, now),
            Notice::Failed { .. } | Notice::Answered { .. } => Vec::new(),
        };
        // The node that found out tells all others, and saves it.
        (inner.is_changed, inner.news) = (false, Vec::new());
        released
    }

    /// Tells other nodes again about the gates that turns of this node closed.
    pub(crate) fn tell_again(&self, now: Millis) {
        self.change(|inner| {
            // Once the wait is over, others need not wait for this node.
            let is_over = |gate: &Gate| matches!(gate.state, State::Closed { until, .. } if until <= now);
            let told = inner.gates.iter().filter(|(_, gate)| gate.is_told() && !is_over(gate));
            let targets: Vec<_> = told.map(|(target, _)| target.clone()).collect();
            for target in targets {
                inner.note_closed(&target, now);
                inner.note_probe(&target);
            }
        });
    }
}

impl Inner {
    /// Until when a gate is closed, and for which turn.
    pub(super) fn closed(&self, target: &str) -> Option<(Millis, TurnId)> {
        match &self.gates.get(target)?.state {
            State::Closed { until, first } => Some((*until, first.clone())),
            State::Probing { .. } | State::Opening { .. } => None,
        }
    }

    /// Tells other nodes about a gate that a turn of this node closed. Those that are offline find out by themselves.
    pub(super) fn note_closed(&mut self, target: &str, now: Millis) {
        let Some(gate) = self.gates.get(target).filter(|gate| gate.is_told()) else { return };
        let State::Closed { until, first } = &gate.state else { return };
        self.news.push(Notice::Closed(Closed {
            target: target.to_owned(),
            closed_ms_ago: now.since(gate.closed_at),
            left_ms: until.since(now),
            first: first.clone(),
            hint_left_ms: gate.why.hint_ends.map(|ends| ends.since(now)),
            failure: brief(&gate.why.failure),
        }));
    }

    /// Tells other nodes about the turn of this node that asks a limited target.
    pub(super) fn note_probe(&mut self, target: &str) {
        let Some(gate) = self.gates.get(target).filter(|gate| gate.is_told()) else { return };
        if let State::Probing { turn } = &gate.state {
            self.news.push(Notice::Probing { target: target.to_owned(), turn: turn.clone() });
        }
    }

    fn hear_closed(&mut self, closed: Closed, now: Millis) {
        let Closed { target, closed_ms_ago, left_ms, first, hint_left_ms, failure } = closed;
        let closed_at = ago(now, closed_ms_ago);
        if self.answered.get(&target).is_some_and(|answered| answered.at > closed_at) {
            // It has answered since, and the other node has not heard of it.
            return;
        }
        let until = now.plus(left_ms);
        let why = Why { failure, hint_ends: hint_left_ms.map(|ms| now.plus(ms)), is_offline: false };
        let is_new = match self.gates.get(&target) {
            // Its outcome decides.
            Some(Gate { state: State::Probing { .. }, source: Source::Here | Source::Saved, .. }) => false,
            Some(Gate { state: State::Closed { until: known, first: asks }, source, .. }) if *known > now => {
                let is_heard = matches!(source, Source::Heard(_));
                // Whose turn asks may change its mind.
                let is_its = is_heard && (*asks == first || first.as_str().is_empty());
                // The longest wait counts. If they are about as long, all nodes choose the same turn.
                let is_as_long = until.0.abs_diff(known.0) <= AS_LONG_MS;
                is_its || if is_as_long { first < *asks } else { until > *known }
            }
            _ => true,
        };
        if !is_new {
            return;
        }
        let state = State::Closed { until, first };
        match self.gates.get_mut(&target) {
            Some(gate) => {
                if !matches!(gate.state, State::Closed { .. }) {
                    (gate.put_off, gate.waiting) = (0, HashMap::new());
                }
                (gate.state, gate.why, gate.source) = (state, why, Source::Heard(now));
                gate.closed_at = gate.closed_at.max(closed_at);
            }
            None if left_ms > 0 => {
                let gate = Gate {
                    state,
                    why,
                    source: Source::Heard(now),
                    closed_at,
                    put_off: 0,
                    misses: 0,
                    waiting: HashMap::new(),
                    limit: None,
                    window: None,
                };
                self.gates.insert(target, gate);
            }
            None => {}
        }
    }

    fn hear_probing(&mut self, target: &str, turn: TurnId, now: Millis) {
        if let Some(gate) = self.gates.get_mut(target)
            && (matches!(gate.state, State::Closed { .. }) || matches!(gate.source, Source::Heard(_)))
            && !matches!(gate.state, State::Opening { .. })
        {
            (gate.state, gate.source) = (State::Probing { turn }, Source::Heard(now));
        }
    }
}

impl Gate {
    /// Whether other nodes are told about it.
    fn is_told(&self) -> bool {
        self.source == Source::Here && !self.why.is_offline
    }

    /// Whether the node that told of this state, and whose turn decides when it ends, has fallen silent.
    pub(super) fn is_outdated(&self, now: Millis) -> bool {
        let Source::Heard(at) = self.source else { return false };
        let is_open = matches!(self.state, State::Opening { .. });
        !is_open && self.why.hint_ends.is_none_or(|ends| ends <= now) && now.since(at) > BELIEVED_MS
    }

    /// Until when a turn waits at most before it looks again.
    pub(super) fn believed_until(&self, now: Millis) -> Millis {
        match self.source {
            Source::Heard(_) if self.why.hint_ends.is_none() => now.plus(LOOK_AGAIN_MS),
            Source::Heard(_) | Source::Here | Source::Saved => Millis(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests;
