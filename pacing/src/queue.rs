//! Who waits, in order: interactive turns first, then by age; one of eight is a background turn, so that none starves.

use alloc::collections::{BTreeMap, btree_map::Entry};

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use crate::{Priority, Size};

/// How many interactive calls in a row go before background calls that wait.
const IN_A_ROW: u32 = 7;

/// The place of a turn among those of its priority: by age, then by arrival.
type Place = (Millis, u64);

/// A turn that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) turn: TurnId,
    pub(crate) priority: Priority,
    pub(crate) size: Size,
}

/// The turns that wait for a target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    interactive: BTreeMap<Place, Waiter>,
    background: BTreeMap<Place, Waiter>,
    places: BTreeMap<TurnId, (Priority, Place)>,
    arrivals: u64,
    in_a_row: u32,
}

impl Queue {
    /// Adds a turn, or updates it: it keeps its place.
    pub(crate) fn wait(&mut self, waiter: Waiter, since: Millis) {
        let priority = waiter.priority;
        let place = match self.places.entry(waiter.turn.clone()) {
            Entry::Occupied(known) if known.get().0 == priority => known.get().1,
            Entry::Occupied(mut known) => {
                let (was, place) = known.insert((priority, (since, known.get().1.1)));
                self.of_mut(was).remove(&place);
                (since, place.1)
            }
            Entry::Vacant(vacant) => {
                self.arrivals += 1;
                vacant.insert((priority, (since, self.arrivals))).1
            }
        };
        self.of_mut(priority).insert(place, waiter);
    }

    pub(crate) fn remove(&mut self, turn: &TurnId) -> Option<Waiter> {
        let (priority, place) = self.places.remove(turn)?;
        self.of_mut(priority).remove(&place)
    }

    /// Takes note that a call goes.
    pub(crate) fn went(&mut self, priority: Priority) {
        self.in_a_row = match priority {
            Priority::Interactive if !self.background.is_empty() => self.in_a_row + 1,
            _ => 0,
        };
    }

    /// Returns the turns in the order in which they go.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Waiter> {
        let is_due = self.in_a_row >= IN_A_ROW;
        let due = self.background.values().take(usize::from(is_due));
        due.chain(self.interactive.values()).chain(self.background.values().skip(usize::from(is_due)))
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    fn of_mut(&mut self, priority: Priority) -> &mut BTreeMap<Place, Waiter> {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Background => &mut self.background,
        }
    }
}
