//! Who waits, in order: interactive turns first; one of eight is a background turn, so that none starves. Within a priority,
//! callers take turns ([`Class`]), and each caller's go by age.

mod class;

use alloc::collections::{BTreeMap, btree_map::Entry};

use everturn_kernel::Millis;
use everturn_wire::{CallerName, TurnId};

use crate::{Priority, Size};
use class::{Class, Merge};
pub(crate) use class::{USUAL_COST, WHOLE};

/// How many interactive calls in a row go before background calls that wait.
pub(crate) const IN_A_ROW: u32 = 7;

/// The place of a turn among those of its caller and priority: by age, then by arrival.
type Place = (Millis, u64);

/// A turn that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) turn: TurnId,
    pub(crate) caller: Option<CallerName>,
    pub(crate) priority: Priority,
    pub(crate) size: Size,
}

/// Where a turn waits.
#[derive(Clone, Debug)]
struct Spot {
    caller: Option<CallerName>,
    priority: Priority,
    place: Place,
}

/// The turns that wait for a target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    interactive: Class,
    background: Class,
    spots: BTreeMap<TurnId, Spot>,
    arrivals: u64,
    in_a_row: u32,
}

impl Queue {
    /// Adds a turn, or updates it: it keeps its place.
    pub(crate) fn wait(&mut self, waiter: Waiter, since: Millis) {
        let (priority, caller) = (waiter.priority, waiter.caller.clone());
        let place = match self.spots.entry(waiter.turn.clone()) {
            Entry::Occupied(known) if known.get().priority == priority => known.get().place,
            Entry::Occupied(mut known) => {
                let place = (since, known.get().place.1);
                let was = known.insert(Spot { caller, priority, place });
                self.of_mut(was.priority).remove(&was.caller, &was.place);
                place
            }
            Entry::Vacant(vacant) => {
                self.arrivals += 1;
                vacant.insert(Spot { caller, priority, place: (since, self.arrivals) }).place
            }
        };
        self.of_mut(priority).insert(place, waiter);
    }

    pub(crate) fn remove(&mut self, turn: &TurnId) -> Option<Waiter> {
        let Spot { caller, priority, place } = self.spots.remove(turn)?;
        self.of_mut(priority).remove(&caller, &place)
    }

    /// Takes note that a call goes. `cost`: how much of what is scarce it uses up. `in_turn`: whether it was first in order.
    pub(crate) fn went(&mut self, waiter: &Waiter, cost: u64, in_turn: bool) {
        self.in_a_row = match waiter.priority {
            Priority::Interactive if !self.background.is_empty() => self.in_a_row + 1,
            _ => 0,
        };
        self.of_mut(waiter.priority).went(&waiter.caller, cost, in_turn);
    }

    /// Returns the turns in the order in which they go.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder {
            is_due: self.in_a_row >= IN_A_ROW,
            last: Last::Interactive,
            interactive: self.interactive.in_order(),
            background: self.background.in_order(),
        }
    }

    /// Whether this caller waits.
    pub(crate) fn has(&self, caller: &Option<CallerName>) -> bool {
        self.interactive.has(caller) || self.background.has(caller)
    }

    /// Returns the first turn of each caller that waits.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Waiter> {
        self.interactive.heads().chain(self.background.heads())
    }

    /// Returns how many turns of a caller wait.
    pub(crate) fn waiting_of(&self, caller: &Option<CallerName>) -> usize {
        self.interactive.waiting_of(caller) + self.background.waiting_of(caller)
    }

    pub(crate) fn next_of(&self, caller: &Option<CallerName>) -> Option<Size> {
        self.interactive.next_of(caller).or_else(|| self.background.next_of(caller))
    }

    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    /// Returns about how many go before this turn, if it came last among its caller's. `is_held`: of a caller's first turn, that
    /// its caller may not go.
    pub(crate) fn before(&self, waiter: &Waiter, is_held: impl Fn(&Waiter) -> bool) -> usize {
        let (own, other) = match waiter.priority {
            Priority::Interactive => (&self.interactive, &self.background),
            Priority::Background => (&self.background, &self.interactive),
        };
        let is_held = |first: &Waiter| first.caller != waiter.caller && is_held(first);
        let in_class = own.within(own.waiting_of(&waiter.caller), is_held);
        in_class.saturating_sub(1) + other.within(usize::MAX, is_held)
    }

    /// Returns since when a turn has wanted its call.
    pub(crate) fn since(&self, turn: &TurnId) -> Option<Millis> {
        self.spots.get(turn).map(|spot| spot.place.0)
    }

    fn of_mut(&mut self, priority: Priority) -> &mut Class {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Background => &mut self.background,
        }
    }
}

/// The turns in the order in which they go.
pub(crate) struct InOrder<'a> {
    /// Whether it is a background turn's turn.
    is_due: bool,
    last: Last,
    interactive: Merge<'a>,
    background: Merge<'a>,
}

/// What was returned last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Due,
    Interactive,
    Background,
}

impl<'a> InOrder<'a> {
    pub(crate) fn next(&mut self) -> Option<&'a Waiter> {
        if core::mem::take(&mut self.is_due)
            && let Some(due) = self.background.next()
        {
            self.last = Last::Due;
            return Some(due);
        }
        self.last = Last::Interactive;
        self.interactive.next().or_else(|| {
            self.last = Last::Background;
            self.background.next()
        })
    }

    /// Leaves out the caller whose turn was returned last, because it may not go.
    pub(crate) fn skip_caller(&mut self) {
        match self.last {
            Last::Interactive => self.interactive.skip_caller(),
            Last::Due | Last::Background => self.background.skip_caller(),
        }
        self.is_due = self.last == Last::Due;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_turn_that_asks_again_with_another_priority_moves_and_keeps_its_age() {
        let mut queue = Queue::default();
        let mut order_after = |turn: &str, priority, since| {
            let waiter = Waiter { turn: turn.into(), caller: None, priority, size: Size::default() };
            queue.wait(waiter, Millis(since));
            let mut order = queue.in_order();
            core::iter::from_fn(|| order.next()).map(|waiter| waiter.turn.clone()).collect::<Vec<_>>()
        };
        order_after("a", Priority::Interactive, 1);
        assert_eq!(order_after("b", Priority::Interactive, 2), ["a".into(), "b".into()]);
        assert_eq!(order_after("a", Priority::Background, 1), ["b".into(), "a".into()]);
        assert_eq!(order_after("a", Priority::Interactive, 1), ["a".into(), "b".into()]);
        assert_eq!(
            order_after("a", Priority::Interactive, 3),
            ["a".into(), "b".into()],
            "it keeps its place"
        );
    }

    #[test]
    fn turns_of_all_priorities_count_and_none_of_other_callers_that_are_held() {
        let mut queue = Queue::default();
        let [ann, bob] = ["ann", "bob"].map(|name| CallerName::parse(name).ok());
        let mut wait = |turn: &str, caller: &Option<CallerName>, priority| {
            let waiter =
                Waiter { turn: turn.into(), caller: caller.clone(), priority, size: Size::default() };
            queue.wait(waiter.clone(), Millis(1));
            waiter
        };
        let first = wait("a", &ann, Priority::Interactive);
        wait("b", &ann, Priority::Background);
        wait("c", &bob, Priority::Interactive);
        assert_eq!((queue.waiting_of(&ann), queue.waiting_of(&bob)), (2, 1));
        assert_eq!([false, true].map(|is_held| queue.before(&first, |_| is_held)), [2, 1]);
    }

    #[test]
    fn if_a_caller_in_the_background_is_left_out_when_that_is_due_the_next_one_there_goes() {
        let mut queue = Queue::default();
        for (turn, caller, priority) in [
            ("a", "ann", Priority::Background),
            ("later", "ann", Priority::Background),
            ("b", "bob", Priority::Background),
            ("c", "bob", Priority::Interactive),
        ] {
            let caller = CallerName::parse(caller).ok();
            let waiter = Waiter { turn: turn.into(), caller, priority, size: Size::default() };
            queue.wait(waiter.clone(), Millis(1));
            if turn == "c" {
                (0..IN_A_ROW).for_each(|_| queue.went(&waiter, 1, true));
            }
        }
        let mut order = queue.in_order();
        assert_eq!(order.next().map(|first| first.turn.clone()), Some("a".into()));
        order.skip_caller();
        let rest = core::iter::from_fn(|| order.next()).map(|waiter| waiter.turn.clone());
        assert_eq!(rest.collect::<Vec<_>>(), ["b".into(), "c".into()]);
    }
}
