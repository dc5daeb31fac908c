//! The turns of one priority: callers take turns, so that each waits for the others' shares only, however much they want.
//!
//! This is start-time fair queueing. Each caller has a round: what was admitted for it, in shares of the scarce resource. The
//! lowest round goes first; a caller that begins to wait joins at the round of whoever went last, so that idle time earns no credit.

use alloc::collections::{BTreeMap, BTreeSet, BinaryHeap, btree_set};
use core::{cmp::Reverse, iter::Peekable, ops::Bound};

use everturn_wire::CallerName;

use super::{Place, Waiter};
use crate::Size;

/// What a call costs if no limit is known: a hundredth of [`WHOLE`].
pub(crate) const USUAL_COST: u64 = WHOLE / 100;

/// What a call costs that uses up a whole window.
pub(crate) const WHOLE: u64 = 1_000_000;

/// A caller; `None` = the administrator, or everybody if there are no callers.
type Key = Option<CallerName>;

/// One caller's turns.
#[derive(Clone, Debug, Default)]
struct Lane {
    waiting: BTreeMap<Place, Waiter>,
    round: u64,
}

impl Lane {
    fn first(&self) -> Option<Place> {
        self.waiting.keys().next().copied()
    }
}

/// The turns of one priority.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    lanes: BTreeMap<Key, Lane>,
    /// The callers that wait, in the order in which they go.
    order: BTreeSet<(u64, Place, Key)>,
    /// The round of who went last.
    now: u64,
}

impl Class {
    pub(super) fn insert(&mut self, place: Place, waiter: Waiter) {
        self.change(&waiter.caller.clone(), |lane| lane.waiting.insert(place, waiter));
    }

    pub(super) fn remove(&mut self, caller: &Key, place: &Place) -> Option<Waiter> {
        self.change(caller, |lane| lane.waiting.remove(place))
    }

    /// Takes note that a call of this caller goes.
    pub(super) fn went(&mut self, caller: &Key, cost: u64, in_turn: bool) {
        if self.order.is_empty() {
            return;
        }
        // Who was held back for another reason saves nothing up either.
        let now = self.now;
        let start = self.change(caller, |lane| {
            let start = lane.round.max(now);
            lane.round = start.saturating_add(cost);
            start
        });
        if in_turn {
            self.now = start;
        }
    }

    /// Changes a caller's lane, and its place in the order.
    fn change<T>(&mut self, caller: &Key, change: impl FnOnce(&mut Lane) -> T) -> T {
        let lane = self.lanes.entry(caller.clone()).or_default();
        let before = lane.first().map(|first| (lane.round, first));
        let result = change(lane);
        if before.is_none() {
            lane.round = lane.round.max(self.now);
        }
        let after = lane.first().map(|first| (lane.round, first));
        let is_spent = after.is_none() && lane.round <= self.now;
        if before != after {
            if let Some((round, first)) = before {
                self.order.remove(&(round, first, caller.clone()));
            }
            if let Some((round, first)) = after {
                self.order.insert((round, first, caller.clone()));
            }
        }
        if self.order.is_empty() {
            // Nobody waits, so nobody is ahead of anybody.
            self.lanes.clear();
            self.now = 0;
        } else if is_spent {
            self.lanes.remove(caller);
        }
        result
    }

    /// Returns the turns in the order in which they go.
    pub(super) fn in_order(&self) -> Merge<'_> {
        Merge {
            lanes: &self.lanes,
            fresh: self.order.iter().peekable(),
            begun: BinaryHeap::new(),
            last: None,
        }
    }

    pub(super) fn heads(&self) -> impl Iterator<Item = &Waiter> {
        self.order.iter().filter_map(|(_, place, caller)| self.lanes.get(caller)?.waiting.get(place))
    }

    pub(super) fn waiting_of(&self, caller: &Key) -> usize {
        self.lanes.get(caller).map_or(0, |lane| lane.waiting.len())
    }

    pub(super) fn next_of(&self, caller: &Key) -> Option<Size> {
        Some(self.lanes.get(caller)?.waiting.first_key_value()?.1.size)
    }

    pub(super) fn has(&self, caller: &Key) -> bool {
        self.lanes.get(caller).is_some_and(|lane| !lane.waiting.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns about how many turns go in the rounds in which so many of one caller do. `is_held`: of another caller's first
    /// turn, that its caller may not go.
    pub(super) fn within(&self, rounds: usize, is_held: impl Fn(&Waiter) -> bool) -> usize {
        let lanes = self.lanes.values().map(|lane| &lane.waiting);
        let may_go = lanes.filter(|lane| lane.values().next().is_some_and(|first| !is_held(first)));
        may_go.map(|lane| lane.len().min(rounds)).sum()
    }
}

/// A turn in the order: its round, its place, its caller.
type Next<'a> = (u64, Place, &'a Key);

/// Merges the lanes, as if each call cost the same.
pub(super) struct Merge<'a> {
    lanes: &'a BTreeMap<Key, Lane>,
    /// Lanes of which none was returned.
    fresh: Peekable<btree_set::Iter<'a, (u64, Place, Key)>>,
    /// The others: where they go on.
    begun: BinaryHeap<Reverse<Next<'a>>>,
    /// What was returned last.
    last: Option<Next<'a>>,
}

impl<'a> Merge<'a> {
    pub(super) fn next(&mut self) -> Option<&'a Waiter> {
        if let Some((round, place, caller)) = self.last.take() {
            let mut later = self.lanes.get(caller)?.waiting.range((Bound::Excluded(place), Bound::Unbounded));
            let next =
                later.next().map(|(next, _)| Reverse((round.saturating_add(USUAL_COST), *next, caller)));
            self.begun.extend(next);
        }
        let fresh = self.fresh.peek().map(|(round, place, caller)| (*round, *place, caller));
        let begun = self.begun.peek().map(|Reverse(next)| *next);
        let next = fresh.into_iter().chain(begun).min()?;
        if fresh == Some(next) {
            self.fresh.next();
        } else {
            self.begun.pop();
        }
        self.last = Some(next);
        let (_, place, caller) = next;
        self.lanes.get(caller)?.waiting.get(&place)
    }

    /// Leaves out the other turns of the caller whose turn was returned last.
    pub(super) fn skip_caller(&mut self) {
        self.last = None;
    }
}
