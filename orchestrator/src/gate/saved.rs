//! The saved form of gates, for the next process.

use std::collections::{BTreeMap, HashMap};

use everturn_kernel::Millis;
use everturn_wire::{Failure, TurnId};
use serde::{Deserialize, Serialize};

use super::{
    Answered, Inner, KNOWN_MS,
    state::{Gate, Source, State, Why},
    window::Window,
};

/// The saved document.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Saved {
    /// When it was saved. All other times in it are earlier, or derived from earlier ones.
    at: Millis,
    gates: BTreeMap<String, SavedGate>,
    /// When each target last answered.
    answered: BTreeMap<String, Millis>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedGate {
    /// Until when the gate is closed, and which turn asks then; `None` if it was opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed: Option<Closed>,
    failure: Failure,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint_ends: Option<Millis>,
    #[serde(default)]
    is_offline: bool,
    closed_at: Millis,
    #[serde(default)]
    misses: u32,
    /// How many requests the provider allows per window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Closed {
    until: Millis,
    first: TurnId,
}

impl Saved {
    pub(super) fn of(inner: &Inner, now: Millis) -> Self {
        let gates = inner.gates.iter().map(|(target, gate)| (target.clone(), SavedGate::of(gate)));
        let answered = inner.answered.iter().map(|(target, answered)| (target.clone(), answered.at));
        Self { at: now, gates: gates.collect(), answered: answered.collect() }
    }

    /// Adds everything that is not out of date. If the clock was set back since the save, all times are moved back with
    /// it.
    pub(super) fn restore(self, inner: &mut Inner, now: Millis) {
        let back = self.at.since(now);
        let moved = |at: Millis| Millis(at.0.saturating_sub(back));
        let is_recent = |at: Millis| now.since(at) <= KNOWN_MS;
        for (target, at) in self.answered {
            let at = moved(at);
            if is_recent(at) {
                inner.answered.entry(target).or_insert(Answered { at, saved_at: at });
            }
        }
        for (target, saved) in self.gates {
            let gate = saved.gate(moved, now);
            let relevant_at =
                if let State::Closed { until, .. } = gate.state { until } else { gate.closed_at };
            if is_recent(relevant_at) {
                inner.gates.entry(target).or_insert(gate);
            }
        }
    }
}

impl SavedGate {
    fn of(gate: &Gate) -> Self {
        let closed = match &gate.state {
            State::Closed { until, first } => Some(Closed { until: *until, first: first.clone() }),
            // The call is lost with its process; the same turn repeats it.
            State::Probing { turn } => Some(Closed { until: gate.closed_at, first: turn.clone() }),
            State::Opening { .. } => None,
        };
        let Why { failure, hint_ends, is_offline } = gate.why.clone();
        Self {
            closed,
            failure,
            hint_ends,
            is_offline,
            closed_at: gate.closed_at,
            misses: gate.misses,
            limit: gate.limit,
        }
    }

    /// Restores a gate. One that was opening begins to open again, so that turns that became due meanwhile do not all
    /// come at once.
    fn gate(self, moved: impl Fn(Millis) -> Millis, now: Millis) -> Gate {
        let state = match self.closed {
            Some(Closed { until, first }) => State::Closed { until: moved(until), first },
            None => State::Opening { since: now, let_go: 0 },
        };
        let hint_ends = self.hint_ends.map(&moved);
        let why = Why { failure: self.failure, hint_ends, is_offline: self.is_offline };
        let closed_at = moved(self.closed_at);
        let (limit, window) = (self.limit, self.limit.map(|limit| Window::assumed(limit, now)));
        let (misses, waiting) = (self.misses, HashMap::new());
        Gate { state, why, source: Source::Saved, closed_at, put_off: 0, misses, waiting, limit, window }
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::Category;

    use super::super::Gates;
    use super::*;

    const NOW: Millis = Millis(1_000_000_000);

    /// Returns the gates of the next process, which begins at `now`.
    fn next(gates: &Gates, saved_at: Millis, now: Millis) -> Gates {
        let json = gates.json(saved_at).unwrap();
        let next = Gates::default();
        serde_json::from_str::<Saved>(&json).unwrap().restore(&mut next.lock(), now);
        next
    }

    fn waits(gates: &Gates, turn: &str, now: Millis) -> Option<u64> {
        gates.enter("m", &"c".into(), &turn.into(), now).map(|hold| hold.wait_ms)
    }

    /// Gates with one closed by the turn `first` for 10 s.
    fn closed() -> Gates {
        let gates = Gates::default();
        let limited = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
        gates.limited("m", &"first".into(), limited, NOW.plus(10_000), NOW);
        gates
    }

    #[test]
    fn a_closed_gate_is_closed_in_the_next_process_and_lets_one_turn_ask() {
        let later = next(&closed(), NOW, NOW.plus(4_000));
        assert_eq!(waits(&later, "a", NOW.plus(4_000)), Some(6_500));
        assert_eq!(waits(&later, "first", NOW.plus(10_000)), None);
        assert!(waits(&later, "a", NOW.plus(10_000)).is_some());
        // The wait ended while no process was running.
        let late = next(&closed(), NOW, NOW.plus(60_000));
        let asked = (0..100).filter(|n| waits(&late, &format!("t{n}"), NOW.plus(60_000)).is_none());
        assert_eq!(asked.count(), 1);
    }

    #[test]
    fn the_turn_that_asked_as_the_process_ended_asks_again() {
        let gates = closed();
        assert_eq!(waits(&gates, "a", NOW.plus(12_000)), None);
        let later = next(&gates, NOW.plus(12_000), NOW.plus(12_100));
        assert_eq!(waits(&later, "a", NOW.plus(12_100)), None);
        assert!(waits(&later, "b", NOW.plus(12_100)).is_some());
    }

    #[test]
    fn one_that_was_opening_opens_little_by_little_again() {
        let gates = closed();
        assert_eq!(waits(&gates, "first", NOW.plus(10_000)), None);
        gates.answered("m", NOW.plus(10_000), None, NOW.plus(10_100));
        let later = next(&gates, NOW.plus(12_000), NOW.plus(60_000));
        let asked = (0..100).filter(|n| waits(&later, &format!("t{n}"), NOW.plus(60_000)).is_none());
        assert_eq!(asked.count(), 2);
    }

    #[test]
    fn nothing_is_kept_for_longer_than_a_day() {
        let gates = closed();
        gates.answered("other", NOW, None, NOW);
        let knows = |now: Millis| {
            let next = next(&gates, NOW, now);
            let inner = next.lock();
            (inner.gates.len(), inner.answered.len())
        };
        assert_eq!(knows(NOW.plus(KNOWN_MS)), (1, 1));
        assert_eq!(knows(NOW.plus(KNOWN_MS + 1)), (1, 0));
        assert_eq!(knows(NOW.plus(KNOWN_MS + 10_001)), (0, 0));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_gate_close_for_longer() {
        let yesterday = Millis(NOW.0 - KNOWN_MS);
        let later = next(&closed(), NOW.plus(1_000), yesterday);
        assert_eq!(waits(&later, "first", yesterday), Some(9_000));
    }
}
