//! The index of parked turns.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_kernel::{Millis, Wait};
use everturn_wire::ConversationId;

use super::AT_ONCE;
use crate::telemetry::GaugeGuard;

/// When to wake conversations.
#[derive(Default)]
pub(super) struct Index(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// Those whose turn is parked, by the time at which its wait ends, earliest first.
    parked: BTreeMap<Place, Parked>,
    /// Those to look at before, which are not counted: a second index by conversation, to move their places, would cost
    /// memory for every parked turn.
    looks: BTreeSet<Place>,
}

type Place = (Millis, ConversationId);

/// Counts a parked turn as active and waiting.
struct Parked {
    _active: GaugeGuard,
    _waiting: GaugeGuard,
}

impl Index {
    /// Adds a conversation, once for each time. Returns whether it is the earliest now.
    pub(super) fn insert(&self, at: Millis, id: ConversationId) -> bool {
        self.add(at, |entries| {
            let parked =
                || Parked { _active: GaugeGuard::active_turn(), _waiting: GaugeGuard::waiting_turn() };
            entries.parked.entry((at, id)).or_insert_with(parked);
        })
    }

    /// Adds a conversation to look at. Returns whether it is the earliest now.
    pub(super) fn look(&self, at: Millis, id: ConversationId) -> bool {
        self.add(at, |entries| _ = entries.looks.insert((at, id)))
    }

    fn add(&self, at: Millis, add: impl FnOnce(&mut Entries)) -> bool {
        let mut entries = self.lock();
        let is_first = entries.first().is_none_or(|(first, _)| at < *first);
        add(&mut entries);
        is_first
    }

    /// Adds many conversations, none of which may be in the index; fastest if they are sorted. Returns whether one of
    /// them is the earliest now.
    pub(super) fn extend(&self, all: Vec<Place>) -> bool {
        let guards = GaugeGuard::parked_turns(all.len());
        let guarded =
            all.into_iter().zip(guards).map(|(at, (_active, _waiting))| (at, Parked { _active, _waiting }));
        // Bulk building is several times faster than inserting one by one.
        let mut new: BTreeMap<_, _> = guarded.collect();
        let Some(first) = new.first_key_value().map(|((first, _), _)| *first) else { return false };
        self.add(first, |Entries { parked, .. }| {
            if parked.is_empty() {
                *parked = new;
            } else {
                parked.append(&mut new);
            }
        })
    }

    /// The number of parked turns.
    pub(super) fn len(&self) -> usize {
        self.lock().parked.len()
    }

    pub(super) fn remove(&self, wait: Wait, id: &ConversationId) {
        let places = [Some(AT_ONCE), wait.due_at()];
        let mut entries = self.lock();
        for at in places.into_iter().flatten() {
            entries.parked.remove(&(at, id.clone()));
        }
    }

    /// Returns when the parked ones of these conversations will be woken. Scans the index up to the last of them.
    pub(super) fn wakes_of(&self, mut ids: HashSet<&ConversationId>) -> Vec<(ConversationId, Millis)> {
        let mut wakes = Vec::new();
        if ids.is_empty() {
            return wakes;
        }
        for (at, id) in self.lock().parked.keys().filter(|(at, _)| *at > AT_ONCE) {
            if ids.remove(id) {
                wakes.push((id.clone(), *at));
            }
            if ids.is_empty() {
                break;
            }
        }
        wakes
    }

    /// Removes and returns the first conversation if it is due, and whether it is only to be looked at; otherwise returns the time
    /// left until then.
    pub(super) fn due(&self, now: Millis) -> Result<(ConversationId, bool), Option<Duration>> {
        let mut entries = self.lock();
        let Some((at, _)) = entries.first() else { return Err(None) };
        match at.since(now) {
            0 => entries.pop().ok_or(None),
            left => Err(Some(Duration::from_millis(left))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn first(&self) -> Option<&Place> {
        let parked = self.parked.first_key_value().map(|(place, _)| place);
        parked.into_iter().chain(self.looks.first()).min()
    }

    /// Removes the first one. The second value says whether it is only to be looked at.
    fn pop(&mut self) -> Option<(ConversationId, bool)> {
        let parked = self.parked.first_key_value().map(|(place, _)| place);
        let is_look = self.looks.first().is_some_and(|look| parked.is_none_or(|parked| look < parked));
        let place =
            if is_look { self.looks.pop_first() } else { self.parked.pop_first().map(|(place, _)| place) };
        place.map(|(_, id)| (id, is_look))
    }
}
