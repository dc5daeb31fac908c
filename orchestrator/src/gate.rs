//! Gates: turns that ask the same target share what one of them found out, and are let through one by one.

mod pass;
mod slot;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::{Hold, Millis};
use everturn_wire::{Category, ConversationId, Failure, TurnId};

pub(crate) use pass::Pass;
use slot::slot_ms;

/// How much later than its wait ends a turn may ask before another one takes its place, in milliseconds: it is woken by a
/// timer, among others.
const GRACE_MS: u64 = 2_000;

/// How long after the first answer the gate is gone, in milliseconds: by then half a million turns were let through.
const OPENED_MS: u64 = 20_000;

/// How long a turn that was limited has to say how long it waits, in milliseconds: it saves that first.
const UNDECIDED_MS: u64 = 1_000;

/// The waits between calls that test whether the network is back, in milliseconds; the last one is repeated.
const PROBE_MS: [u64; 4] = [5_000, 10_000, 20_000, 30_000];

/// For how long after a target last answered a connection that fails counts as our own network, in milliseconds: 24 h.
const KNOWN_MS: u64 = 24 * 60 * 60 * 1_000;

/// The gates of the targets that cannot be asked by everyone right now, by the id of the model, and when each target
/// answered last.
#[derive(Debug, Default)]
pub(crate) struct Gates(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    gates: HashMap<String, Gate>,
    answered: HashMap<String, Millis>,
}

/// What is known of a target that cannot be asked by everyone.
#[derive(Debug)]
struct Gate {
    state: State,
    why: Why,
    /// When it was closed. Calls from before say nothing about how the target does now.
    closed_at: Millis,
    /// Turns that were put off since the state began: the next one comes after them.
    put_off: u32,
    /// Calls in a row that reached nobody.
    misses: u32,
    /// Whose turns wait for its end, each with its place in the row; once it answers early, who is let go of.
    waiting: HashMap<ConversationId, u32>,
}

#[derive(Debug)]
enum State {
    /// Nobody asks before this moment; then this turn does.
    Closed { until: Millis, first: TurnId },
    /// This turn asks.
    Probing { turn: TurnId },
    /// It answers again: more and more turns are let through.
    Opening { since: Millis, let_go: u32 },
}

/// What keeps turns from asking.
#[derive(Clone, Debug)]
struct Why {
    failure: Failure,
    /// When the provider said that the limit is over: true whatever becomes of the turn that was refused.
    hint_ends: Option<Millis>,
    /// There is no network: its waits cost nothing.
    is_offline: bool,
}

impl Gates {
    /// Lets the turn of a conversation ask this target now, unless it is put off.
    pub(crate) fn enter(
        &self,
        target: &str,
        id: &ConversationId,
        turn: &TurnId,
        now: Millis,
    ) -> Option<Box<Hold>> {
        let mut inner = self.lock();
        let gate = inner.gates.get_mut(target)?;
        match gate.enter(turn, now) {
            Entered::Go => None,
            Entered::Gone => {
                inner.gates.remove(target);
                None
            }
            Entered::Wait(until) => {
                if matches!(gate.state, State::Closed { .. }) {
                    gate.waiting.insert(id.clone(), gate.put_off);
                }
                Some(gate.why.hold(until.since(now), true))
            }
        }
    }

    /// A turn was refused by a limit, and asks again then.
    pub(crate) fn limited(&self, target: &str, turn: &TurnId, failure: Failure, until: Millis, now: Millis) {
        let why = Why { failure, hint_ends: None, is_offline: false };
        self.lock().decided(target, turn, why, until, now);
    }

    /// The call of a turn failed. Says how long it is put off if that was for want of a network. A failure that is no limit
    /// opens the gate: those who wait come by themselves then.
    fn failed(&self, call: &Pass, failure: &Failure, now: Millis) -> Option<Box<Hold>> {
        let Pass { target, turn, asked_at, waits_for_network, .. } = call;
        let mut inner = self.lock();
        let is_unreached = *waits_for_network && failure.unreached.is_some();
        if is_unreached && inner.is_offline(target, failure, *asked_at, now) {
            let why = Why { failure: offline(failure), hint_ends: None, is_offline: true };
            return Some(why.hold(inner.unreached(target, turn, &why, now), false));
        }
        // Any other failure is no limit.
        if failure.category == Category::RateLimited {
            inner.undecided(target, turn, failure, now);
        } else {
            _ = inner.open(target, *asked_at, now);
        }
        None
    }

    /// Whether what the turn of this conversation waits for is over, so that it need not wait to the end. Says so once.
    pub(crate) fn lets_go_of(&self, id: &ConversationId) -> bool {
        let mut inner = self.lock();
        let mut opening = inner.gates.values_mut().filter(|gate| matches!(gate.state, State::Opening { .. }));
        opening.any(|gate| gate.waiting.remove(id).is_some())
    }

    /// The target answers a call that was made then. Says who need not wait any longer, and when each is to be woken.
    fn answered(&self, target: &str, asked_at: Millis, now: Millis) -> Vec<(Millis, ConversationId)> {
        let mut inner = self.lock();
        let released = inner.open(target, asked_at, now);
        match inner.answered.get_mut(target) {
            Some(at) => *at = now,
            None => {
                inner.answered.insert(target.to_owned(), now);
            }
        }
        released
    }

    /// A turn ended. Where it was the first to ask again, and only its own schedule said when, the next one asks.
    pub(crate) fn ended(&self, target: &str, turn: &TurnId, now: Millis) {
        let mut inner = self.lock();
        if let Some(Gate { state: State::Closed { until, first }, why, .. }) = inner.gates.get_mut(target)
            && first == turn
        {
            (*until, *first) = ((*until).min(why.hint_ends.unwrap_or(now)), TurnId::from(""));
        }
    }

    /// The call of a turn ended before anything was known of it. If it was the one that asked, the next one does.
    fn left(&self, target: &str, turn: &TurnId, now: Millis) {
        let mut inner = self.lock();
        if let Some(gate) = inner.gates.get_mut(target)
            && matches!(&gate.state, State::Probing { turn: asking } if asking == turn)
        {
            gate.state = State::Closed { until: now, first: TurnId::from("") };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn close(&mut self, target: &str, turn: &TurnId, why: Why, until: Millis, now: Millis) {
        if until <= now {
            return;
        }
        let first = turn.clone();
        match self.gates.get_mut(target) {
            // Several turns were refused at once: the longest wait counts, and the first of them is the first again.
            Some(Gate { state: State::Closed { until: known, .. }, .. }) if *known > now => {
                *known = until.max(*known);
            }
            Some(gate) => {
                (gate.state, gate.why) = (State::Closed { until, first }, why);
                (gate.closed_at, gate.put_off) = (now, 0);
                gate.waiting = HashMap::new();
            }
            None => {
                let state = State::Closed { until, first };
                let waiting = HashMap::new();
                let gate = Gate { state, why, closed_at: now, put_off: 0, misses: 0, waiting };
                self.gates.insert(target.to_owned(), gate);
            }
        }
    }

    /// A turn that was limited has decided how long it waits. Where the provider said how long, others need not wait for a
    /// schedule that is longer: the next one asks.
    fn decided(&mut self, target: &str, turn: &TurnId, why: Why, until: Millis, now: Millis) {
        self.close(target, turn, why, until, now);
        let Some(Gate { state: State::Closed { until, first }, why, .. }) = self.gates.get_mut(target) else {
            return;
        };
        if let Some(hint_ends) = why.hint_ends.filter(|hint_ends| hint_ends < until) {
            (*until, *first) = (hint_ends, TurnId::from(""));
        }
    }

    /// The turn that asked was limited: it says shortly how long it waits, if it does.
    fn undecided(&mut self, target: &str, turn: &TurnId, failure: &Failure, now: Millis) {
        let hint_ends = failure.hint_ms.map(|ms| now.plus(ms));
        if hint_ends.is_some()
            || self.gates.get(target).is_some_and(|gate| matches!(gate.state, State::Probing { .. }))
        {
            let why = Why { failure: failure.clone(), hint_ends, is_offline: false };
            self.close(target, turn, why, now.plus(UNDECIDED_MS), now);
        }
    }

    /// A call from after the gate was closed came through. Says who need not wait any longer, and when each is to be woken:
    /// nobody where it was about to open, as they come by themselves.
    fn open(&mut self, target: &str, asked_at: Millis, now: Millis) -> Vec<(Millis, ConversationId)> {
        let Some(gate) = self.gates.get_mut(target) else { return Vec::new() };
        if matches!(gate.state, State::Opening { .. }) || asked_at < gate.closed_at {
            return Vec::new();
        }
        let is_early = matches!(gate.state, State::Closed { until, .. } if now < until);
        (gate.state, gate.put_off, gate.misses) = (State::Opening { since: now, let_go: 0 }, 0, 0);
        if !is_early {
            gate.waiting = HashMap::new();
        }
        let mut waiting: Vec<_> = gate.waiting.iter().map(|(id, place)| (*place, id.clone())).collect();
        waiting.sort_unstable();
        (1..).zip(waiting).map(|(n, (_, id))| (now.plus(slot_ms(n)), id)).collect()
    }

    /// A call reached nobody: how long until the next one tries, in milliseconds. Of several that fail at once, the first one
    /// decides.
    fn unreached(&mut self, target: &str, turn: &TurnId, why: &Why, now: Millis) -> u64 {
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

    /// Whether a call reached nobody because this machine has no network. One that failed to connect proves it only for a
    /// target that answered before, while no other one does.
    fn is_offline(&self, target: &str, failure: &Failure, asked_at: Millis, now: Millis) -> bool {
        use everturn_wire::Unreached::NoRoute;
        let answered_since = self.answered.values().any(|at| *at > asked_at);
        let knows = self.answered.get(target).is_some_and(|at| now.since(*at) <= KNOWN_MS);
        failure.unreached == Some(NoRoute) || (knows && !answered_since)
    }
}

enum Entered {
    Go,
    /// And nobody needs the gate any more.
    Gone,
    Wait(Millis),
}

impl Gate {
    fn enter(&mut self, turn: &TurnId, now: Millis) -> Entered {
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
    fn hold(&self, wait_ms: u64, shared: bool) -> Box<Hold> {
        Box::new(Hold { failure: self.failure.clone(), wait_ms, shared, in_budget: !self.is_offline })
    }
}

/// The failure that is shown while there is no network.
fn offline(failure: &Failure) -> Failure {
    let message = format!("Offline, waiting for the network: {}", failure.message);
    Failure { message, hint_ms: None, ..failure.clone() }
}

#[cfg(test)]
mod tests;
