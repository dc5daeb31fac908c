//! Small random histories, and a search for a linearization.

use std::collections::HashSet;

use super::*;

/// A sequential journal's conversation.
#[derive(Clone, Debug, Default)]
struct State {
    /// Its appends, if it exists.
    marks: Vec<String>,
    /// `None`: of an append whose version nobody was told yet.
    version: Option<u64>,
    /// The highest version so far that somebody was told.
    highest: u64,
}

impl State {
    fn exists(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether this is its version, or may be.
    fn is_at(&mut self, version: u64) -> bool {
        if !self.exists() || version == 0 {
            return !self.exists() && version == 0;
        }
        if self.version.is_none() && version > self.highest {
            (self.version, self.highest) = (Some(version), version);
        }
        self.version == Some(version)
    }

    /// Returns the state after an operation with this answer, if it can have it. `takes_effect`: if that is unknown.
    fn after(mut self, told: &Told) -> Option<Self> {
        let is_right = match told {
            Told::Appended(Append { mark, expected, outcome }) => match outcome {
                Stored(version) => {
                    let is_right = self.is_at(expected.0) && version.0 > self.highest;
                    self.marks.push(mark.clone());
                    (self.version, self.highest) = (Some(version.0), version.0);
                    is_right
                }
                Stale(found) => found != expected && self.is_at(found.0),
                Outcome::NotStored => true,
                Unknown => {
                    let is_right = self.is_at(expected.0);
                    self.marks.push(mark.clone());
                    self.version = None;
                    is_right
                }
            },
            Loaded(None) | Listed(None) | Removed(Some(false)) => !self.exists(),
            Loaded(Some((version, mark))) => self.marks.last() == Some(mark) && self.is_at(version.0),
            Listed(Some(mark)) => self.marks.last() == Some(mark),
            Read { from, marks } => {
                let from = from.as_ref().and_then(|from| self.marks.iter().position(|mark| mark == from));
                self.marks[from.unwrap_or(0)..] == marks[..]
            }
            Removed(_) => {
                let is_right = self.exists();
                self.marks.clear();
                is_right
            }
        };
        is_right.then_some(self)
    }
}

/// Whether there is an order, found by trying all.
pub(super) fn is_linearizable(history: &[Operation]) -> bool {
    let left: Vec<_> = history.iter().collect();
    goes_on(&State::default(), &left)
}

fn goes_on(state: &State, left: &[&Operation]) -> bool {
    let must = || left.iter().filter(|one| !one.is_open());
    let Some(first_end) = must().map(|one| one.ended).min() else { return true };
    (0..left.len()).filter(|at| left[*at].began < first_end).any(|at| {
        let mut rest = left.to_vec();
        let next = rest.remove(at);
        state.clone().after(&next.told).is_some_and(|state| goes_on(&state, &rest))
    })
}

/// Returns a history that a journal told, often with a mistake in it; `None` if the check makes no statement about it.
pub(super) fn history(random: &mut fastrand::Rng) -> Option<Vec<Operation>> {
    let mut history = right(random);
    for _ in 0..random.usize(0..3) {
        spoil(&mut history, random);
    }
    is_in_scope(&history).then_some(history)
}

/// A sequential course, whose operations are then stretched so that they overlap.
fn right(random: &mut fastrand::Rng) -> Vec<Operation> {
    let (mut state, mut version, mut told) = (State::default(), 0, vec![0]);
    let (mut history, mut moments): (Vec<Operation>, _) = (Vec::new(), Vec::new());
    let stretch = random.u64(1..60);
    for n in 0..random.u64(2..8) {
        let mark = n.to_string();
        let expected = if random.u8(0..4) > 0 { current(&state) } else { *random.choice(&told).unwrap() };
        let (is_current, from) = (expected == current(&state), state.marks.first().cloned());
        let answer = match random.u8(0..10) {
            0..5 if is_current => {
                version += random.u64(1..3);
                let outcome = if random.u8(0..4) == 0 { Unknown } else { Stored(Version(version)) };
                state.marks.push(mark.clone());
                state.version = Some(version);
                append(&mark, expected, outcome)
            }
            0..5 => append(&mark, expected, Stale(Version(current(&state)))),
            5 => append(&mark, expected, Unknown),
            6 => read(None, &state.marks.iter().map(String::as_str).collect::<Vec<_>>()),
            7 if random.bool() => Read { from, marks: state.marks.clone() },
            7 => Listed(state.marks.last().cloned()),
            8 if n > 1 && state.exists() => {
                state.marks.clear();
                Removed(random.bool().then_some(true))
            }
            _ => Loaded(state.marks.last().map(|mark| (Version(version), mark.clone()))),
        };
        if matches!(answer, Loaded(Some(_)))
            || matches!(&answer, Told::Appended(append) if matches!(append.outcome, Stored(_)))
        {
            told.push(version);
        }
        history.push(one(0, 0, 0, answer));
        let point = 100 * n;
        let (before, after) = (random.u64(0..10 * stretch), random.u64(0..10 * stretch));
        moments.push((1000 + point - before, history.len() - 1, true));
        moments.push((1000 + point + 1 + after, history.len() - 1, false));
    }
    moments.sort_unstable();
    for (time, (_, at, begins)) in (1..).zip(moments) {
        *if begins { &mut history[at].began } else { &mut history[at].ended } = time;
    }
    history
}

fn current(state: &State) -> u64 {
    if state.exists() { state.version.unwrap_or_default() } else { 0 }
}

/// Exchanges two answers, or the versions or marks in them, or when they were given.
fn spoil(history: &mut [Operation], random: &mut fastrand::Rng) {
    let (a, b) = (random.usize(..history.len()), random.usize(..history.len()));
    let (x, y) = (history[a].clone(), history[b].clone());
    match random.u8(0..4) {
        0 => {
            (history[a].began, history[a].ended) = (y.began, y.ended);
            (history[b].began, history[b].ended) = (x.began, x.ended);
        }
        1 if !matches!(x.told, Told::Appended(_)) && !matches!(y.told, Told::Appended(_)) => {
            (history[a].told, history[b].told) = (y.told, x.told);
        }
        2 => {
            let others: Vec<_> = history.iter().filter_map(version).collect();
            let Some(other) = random.choice(&others).copied() else { return };
            match &mut history[a].told {
                Told::Appended(Append { outcome: Stored(version) | Stale(version), .. })
                | Loaded(Some((version, _))) => *version = other,
                _ => {}
            }
        }
        _ => {
            let others: Vec<_> = history.iter().filter_map(version).collect();
            let Some(other) = random.choice(&others).copied() else { return };
            if let Told::Appended(append) = &mut history[a].told {
                append.expected = other;
            }
        }
    }
}

fn version(one: &Operation) -> Option<Version> {
    match &one.told {
        Told::Appended(Append { outcome: Stored(version), .. }) | Loaded(Some((version, _))) => {
            Some(*version)
        }
        _ => None,
    }
}

/// Whether the check is exact here: each version that is expected or found was told by an append or a load, and a removal comes
/// once, after an acknowledgement.
fn is_in_scope(history: &[Operation]) -> bool {
    let mut known: HashSet<_> = history.iter().filter_map(version).map(|version| version.0).collect();
    known.insert(0);
    let names_known = |one: &Operation| match &one.told {
        Told::Appended(Append { expected, outcome: Stale(found), .. }) => {
            known.contains(&found.0) && known.contains(&expected.0)
        }
        Told::Appended(Append { expected, .. }) => known.contains(&expected.0),
        _ => true,
    };
    let removals: Vec<_> = history.iter().filter(|one| matches!(one.told, Removed(_))).collect();
    let begun = history.iter().filter(|one| {
        matches!(&one.told, Told::Appended(Append { expected: Version(0), outcome: Stored(_), .. }))
    });
    let begun = begun.map(|one| one.ended).min().unwrap_or(u64::MAX);
    history.iter().all(names_known) && removals.len() < 2 && removals.iter().all(|one| begun < one.began)
}
