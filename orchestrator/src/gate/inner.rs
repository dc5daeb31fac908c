//! Opens and closes the gates of all targets.

use std::collections::HashMap;

use everturn_kernel::Millis;
use everturn_wire::{ConversationId, Failure, TurnId};

use super::{
    Inner, KNOWN_MS,
    slot::slot_ms,
    state::{Gate, Source, State, Why},
    window::RequestQuota,
};
use crate::notice::Notice;

/// How long a limited turn has to announce its wait, in milliseconds: it saves the wait first.
const UNDECIDED_MS: u64 = 1_000;

/// Waits between calls that test whether the network is back, in milliseconds; the last one repeats.
const PROBE_MS: [u64; 4] = [5_000, 10_000, 20_000, 30_000];

impl Inner {
    pub(super) fn close(&mut self, target: &str, turn: &TurnId, why: Why, until: Millis, now: Millis) {
        if until <= now {
            return;
        }
        let first = turn.clone();
        match self.gates.get_mut(target) {
            // Several turns were refused at once: the longest wait counts, and the first of them still asks first, unless
            // that is a turn of another node, which may not learn of this.
            Some(Gate { state: State::Closed { until: known, first: asks }, source, .. }) if *known > now => {
                if until <= *known {
                    return;
                }
                *known = until;
                if matches!(source, Source::Heard(_)) {
                    (*asks, *source) = (first, Source::Here);
                }
            }
            Some(gate) => {
                (gate.state, gate.why, gate.source) = (State::Closed { until, first }, why, Source::Here);
                (gate.closed_at, gate.put_off) = (now, 0);
                gate.waiting = HashMap::new();
            }
            None => {
                let state = State::Closed { until, first };
                let waiting = HashMap::new();
                let gate = Gate {
                    state,
                    why,
                    source: Source::Here,
                    closed_at: now,
                    put_off: 0,
                    misses: 0,
                    waiting,
                    limit: None,
                    window: None,
                };
                self.gates.insert(target.to_owned(), gate);
            }
        }
        self.is_changed = true;
    }

    /// Records how many requests a window allows.
    pub(super) fn note_limit(&mut self, target: &str, quota: Option<&RequestQuota>) {
        if let Some(gate) = self.gates.get_mut(target) {
            gate.limit = quota.and_then(|quota| quota.limit).or(gate.limit);
        }
    }

    /// Records how long a limited turn waits. If the provider gave a hint, other turns need not wait for a longer
    /// schedule: the next one asks when the hint ends.
    pub(super) fn decided(&mut self, target: &str, turn: &TurnId, why: Why, until: Millis, now: Millis) {
        self.close(target, turn, why, until, now);
        let Some(Gate { state: State::Closed { until, first }, why, .. }) = self.gates.get_mut(target) else {
            return;
        };
        if let Some(hint_ends) = why.hint_ends.filter(|hint_ends| hint_ends < until) {
            (*until, *first) = (hint_ends, TurnId::from(""));
            self.is_changed = true;
        }
    }

    /// Records that a turn was limited. It will soon announce how long it waits, if it does.
    pub(super) fn undecided(&mut self, target: &str, turn: &TurnId, failure: &Failure, now: Millis) {
        let hint_ends = failure.hint_ms.map(|ms| now.plus(ms));
        if hint_ends.is_some()
            || self.gates.get(target).is_some_and(|gate| matches!(gate.state, State::Probing { .. }))
        {
            let why = Why { failure: failure.clone(), hint_ends, is_offline: false };
            self.close(target, turn, why, now.plus(UNDECIDED_MS), now);
        }
    }

    /// Opens the gate after a call that was made since it closed. Returns which conversations need not wait any longer,
    /// and when to wake each; none if the gate was about to open, because their turns come by themselves.
    pub(super) fn open(
        &mut self,
        target: &str,
        asked_at: Millis,
        quota: Option<RequestQuota>,
        now: Millis,
    ) -> Vec<(Millis, ConversationId)> {
        let Some(gate) = self.gates.get_mut(target).filter(|gate| asked_at >= gate.closed_at) else {
            return Vec::new();
        };
        if matches!(gate.state, State::Opening { .. }) {
            gate.hear(quota, now);
            return Vec::new();
        }
        gate.begin_window(quota, now);
        let is_early = matches!(gate.state, State::Closed { until, .. } if now < until);
        (gate.state, gate.put_off, gate.misses) = (State::Opening { since: now, let_go: 0 }, 0, 0);
        gate.source = Source::Here;
        self.news.push(Notice::Opened { target: target.to_owned(), asked_ms_ago: now.since(asked_at) });
        self.is_changed = true;
        if !is_early {
            gate.waiting = HashMap::new();
        }
        let mut waiting: Vec<_> = gate.waiting.iter().map(|(id, place)| (*place, id.clone())).collect();
        waiting.sort_unstable();
        (1..).zip(waiting).map(|(n, (_, id))| (now.plus(slot_ms(n)), id)).collect()
    }

    /// Records that a call reached nobody. Returns the wait until the next attempt, in milliseconds. If several calls
    /// fail at once, the first one decides.
    pub(super) fn unreached(&mut self, target: &str, turn: &TurnId, why: &Why, now: Millis) -> u64 {
        let misses = match self.gates.get(target) {
            Some(Gate { state: State::Closed { until, .. }, .. }) if *until > now => return until.since(now),
            gate => gate.map_or(0, |gate| gate.misses),
        };
        let wait_ms = PROBE_MS[PROBE_MS.len().min(misses as usize + 1) - 1];
        self.close(target, turn, why.clone(), now.plus(wait_ms), now);
        if let Some(gate) = self.gates.get_mut(target) {
            gate.misses = misses.saturating_add(1);
        }
        wait_ms
    }

    /// Whether a call reached nobody because this machine has no network. A failed connection proves it only if the
    /// target answered before and no target has answered since.
    pub(super) fn is_offline(&self, target: &str, failure: &Failure, asked_at: Millis, now: Millis) -> bool {
        use everturn_wire::Unreached::NoRoute;
        let answered_since = self.answered.values().any(|answered| answered.at > asked_at);
        let knows = self.answered.get(target).is_some_and(|answered| now.since(answered.at) <= KNOWN_MS);
        failure.unreached == Some(NoRoute) || (knows && !answered_since)
    }
}
