//! The index of parked turns.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_kernel::{Millis, Wait};
use everturn_wire::ConversationId;

use super::AT_ONCE;
use crate::telemetry::GaugeGuard;

/// Conversations whose turn is parked, by wake-up time, earliest first.
#[derive(Default)]
pub(super) struct Index(Mutex<BTreeMap<(Millis, ConversationId), Parked>>);

/// Counts a parked turn as active and waiting.
struct Parked {
    _active: GaugeGuard,
    _waiting: GaugeGuard,
}

impl Index {
    /// Adds a conversation. Returns whether it is the earliest now.
    pub(super) fn insert(&self, at: Millis, id: ConversationId) -> bool {
        let mut parked = self.lock();
        let is_first = parked.first_key_value().is_none_or(|((first, _), _)| at < *first);
        parked.insert(
            (at, id),
            Parked { _active: GaugeGuard::active_turn(), _waiting: GaugeGuard::waiting_turn() },
        );
        is_first
    }

    /// Adds many conversations, none of which may be in the index; fastest if they are sorted. Returns whether one of
    /// them is the earliest now.
    pub(super) fn extend(&self, all: Vec<(Millis, ConversationId)>) -> bool {
        let guards = GaugeGuard::parked_turns(all.len());
        let guarded =
            all.into_iter().zip(guards).map(|(at, (_active, _waiting))| (at, Parked { _active, _waiting }));
        // Bulk building is several times faster than inserting one by one.
        let mut new: BTreeMap<_, _> = guarded.collect();
        let mut parked = self.lock();
        let first = |parked: &BTreeMap<(Millis, ConversationId), Parked>| {
            parked.first_key_value().map_or(Millis(u64::MAX), |((first, _), _)| *first)
        };
        let is_first = first(&new) < first(&parked);
        if parked.is_empty() {
            *parked = new;
        } else {
            parked.append(&mut new);
        }
        is_first
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn remove(&self, wait: Wait, id: &ConversationId) {
        let places = [Some(AT_ONCE), wait.due_at()];
        let mut parked = self.lock();
        for at in places.into_iter().flatten() {
            parked.remove(&(at, id.clone()));
        }
    }

    /// Returns when the parked ones of these conversations will be woken. Scans the index up to the last of them.
    pub(super) fn wakes_of(&self, mut ids: HashSet<&ConversationId>) -> Vec<(ConversationId, Millis)> {
        let mut wakes = Vec::new();
        if ids.is_empty() {
            return wakes;
        }
        for (at, id) in self.lock().keys().filter(|(at, _)| *at > AT_ONCE) {
            if ids.remove(id) {
                wakes.push((id.clone(), *at));
            }
            if ids.is_empty() {
                break;
            }
        }
        wakes
    }

    /// Removes and returns the first conversation if it is due; otherwise returns the time left until then.
    pub(super) fn due(&self, now: Millis) -> Result<ConversationId, Option<Duration>> {
        let mut parked = self.lock();
        match parked.first_entry() {
            Some(first) if first.key().0 <= now => Ok(first.remove_entry().0.1),
            Some(first) => Err(Some(Duration::from_millis(first.key().0.since(now)))),
            None => Err(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Millis, ConversationId), Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
