//! One caller's limits on several nodes: which part of what is left this one may use.
//!
//! Each node tells how many calls it has to make and what it used, every second. What is left is divided by what nodes told, so
//! that all come to the same result; one with nothing to do keeps next to nothing, if others have. A node uses a larger part
//! only after it has told for a second that it needs it, and a smaller one at once.

use alloc::{borrow::ToOwned, collections::BTreeMap, string::String, vec::Vec};

use everturn_kernel::Millis;

use super::{Counts, Kind};

/// How much more a call that is to be made counts than a node that has none.
const WEIGHT: u128 = 1_000;

/// What a node tells of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// How many calls it has to make, running ones included.
    pub calls: u64,
    /// What it used.
    pub counts: Counts,
    /// The same of nodes that are gone.
    pub gone: Counts,
}

/// What the nodes used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    /// Its name, and the names of all that are there, in order; empty = there is only this one.
    own: String,
    alive: Vec<String>,
    /// What each told last, this one included.
    told: BTreeMap<String, Use>,
    /// What this one told before.
    before: Use,
    gone: Counts,
}

impl Nodes {
    pub(super) fn hear(&mut self, node: &str, used: Use) {
        self.told.insert(node.to_owned(), used);
        for (known, told) in self.gone.iter_mut().zip(used.gone) {
            *known = (*known).max(told);
        }
    }

    pub(super) fn tell(&mut self, own: &str, alive: &[String], used: Use) {
        self.own = own.to_owned();
        self.alive = alive.to_vec();
        self.alive.sort_unstable();
        self.before = self.told.insert(own.to_owned(), used).unwrap_or_default();
        let left: Vec<String> = self.told.keys().filter(|node| !self.alive.contains(node)).cloned().collect();
        for used in left.iter().filter_map(|node| self.told.remove(node)) {
            for (gone, (number, count)) in self.gone.iter_mut().zip(used.counts) {
                *gone = if number > gone.0 {
                    (number, count)
                } else if number == gone.0 {
                    (number, gone.1 + count)
                } else {
                    *gone
                };
            }
        }
    }

    /// Returns what nodes that are gone used in the present periods.
    pub(super) fn gone(&self, now: Millis) -> Counts {
        let mut gone = self.gone;
        for (kind, used) in Kind::ALL.into_iter().zip(&mut gone) {
            if super::number(kind, now).is_none_or(|number| number != used.0) {
                *used = (0, 0);
            }
        }
        gone
    }

    /// Returns how much this node may use of a limit in this period.
    pub(super) fn allowed(&self, kind: Kind, limit: u64, number: Option<u64>) -> u64 {
        if self.alive.len() < 2 {
            return limit;
        }
        let told = self.told.get(&self.own).copied().unwrap_or_default();
        self.part(kind, limit, number, told).min(self.part(kind, limit, number, self.before))
    }

    /// The same if this node had told that.
    fn part(&self, kind: Kind, limit: u64, number: Option<u64>, own: Use) -> u64 {
        let at = kind as usize;
        let used = |told: &Use| match number {
            Some(number) if told.counts[at].0 != number => 0,
            _ => told.counts[at].1,
        };
        let of = |node: &String| match *node == self.own {
            true => own,
            false => self.told.get(node).copied().unwrap_or_default(),
        };
        let gone = self.gone[at];
        let gone = if number == Some(gone.0) { gone.1 } else { 0 };
        let used_by_all: u64 =
            self.alive.iter().map(|node| used(&of(node))).sum::<u64>().saturating_add(gone);
        let left = u128::from(limit.saturating_sub(used_by_all));
        let weight = |node: &String| u128::from(of(node).calls) * WEIGHT + 1;
        let all: u128 = self.alive.iter().map(weight).sum();
        // Rounded so that the parts of all nodes are what is left.
        let up_to = |weights: u128| (left * weights + all / 2) / all;
        let before: u128 = self.alive.iter().take_while(|node| **node != self.own).map(weight).sum();
        let part = up_to(before + weight(&self.own)) - up_to(before);
        used(&own).saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what each of four nodes may use of a limit in minute 7 if they told this.
    fn allowed(limit: u64, told: [Use; 4]) -> [u64; 4] {
        let names = ["a", "b", "c", "d"].map(ToOwned::to_owned);
        [0, 1, 2, 3].map(|own| {
            let mut nodes = Nodes::default();
            names.iter().zip(told).for_each(|(node, used)| nodes.hear(node, used));
            nodes.tell(&names[own], &names, told[own]);
            nodes.allowed(Kind::RequestsPerMinute, limit, Some(7))
        })
    }

    #[test]
    fn what_is_left_is_divided_without_a_rest_by_the_calls_that_nodes_have_to_make() {
        let used = |calls, minute, count| Use { calls, counts: [(minute, count); 5], ..Use::default() };
        let idle = used(0, 7, 0);
        assert_eq!(allowed(10, [idle; 4]), [3, 2, 3, 2]);
        // The first has used two. What the second used was in another minute, and it has three times as much to do.
        assert_eq!(allowed(10, [used(1, 7, 2), used(3, 6, 5), idle, idle]), [2 + 2, 6, 0, 0]);
    }
}
