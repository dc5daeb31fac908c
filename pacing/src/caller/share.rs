//! One caller's limits on several nodes: this node's share of what is left.
//!
//! Every second, each node reports how many calls it has to make and what it used. What is left is divided by these reports, so
//! that all nodes get the same result: first, each gets room for its next call, beginning with another node in each period; the
//! rest is divided by the number of calls. A node without calls keeps next to nothing while others have some. A node uses a
//! larger share only after reporting for a second that it needs it, and a smaller one at once.

use alloc::{borrow::ToOwned, collections::BTreeMap, string::String, vec::Vec};

use everturn_kernel::Millis;

use super::{Counts, Kind};
use crate::Size;

/// How much more a call that is to be made counts than a node that has none.
const WEIGHT: u128 = 1_000;

/// How long a node is the first to get one of the calls at once, in milliseconds.
const FIRST_MS: u64 = 30_000;

/// How late a node may hear what another one used, in milliseconds.
const LATE_MS: u64 = 2_000;

/// Maximum number of nodes that are gone and known.
const MOST_GONE: usize = 64;

/// What a node tells of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// How many calls it has to make, running ones included.
    pub calls: u64,
    /// The size of the next of them; `None` = none waits.
    pub next: Option<Size>,
    /// What it used.
    pub counts: Counts,
    /// What nodes used that are gone, by name.
    pub gone: BTreeMap<String, Counts>,
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
    pub(super) gone: BTreeMap<String, Counts>,
}

impl Nodes {
    pub(super) fn hear(&mut self, node: &str, mut used: Use) {
        core::mem::take(&mut used.gone).into_iter().for_each(|(name, counts)| self.goes(name, counts));
        self.told.insert(node.to_owned(), used);
    }

    pub(super) fn tell(&mut self, own: &str, alive: &[String], used: Use) {
        self.own = own.to_owned();
        self.alive = alive.to_vec();
        self.alive.sort_unstable();
        // What counts in no period any more.
        let is_over = |counts: &Counts| {
            counts.iter().zip(&used.counts).all(|(gone, own)| gone.0 < own.0 || gone.1 == 0)
        };
        self.gone.retain(|_, counts| !is_over(counts));
        self.before = self.told.insert(own.to_owned(), used).unwrap_or_default();
        let left: Vec<String> = self.told.keys().filter(|node| !self.alive.contains(node)).cloned().collect();
        for node in left {
            let used = self.told.remove(&node).unwrap_or_default();
            self.goes(node, used.counts);
        }
        // One that was only silent tells by itself what it used.
        self.gone.retain(|node, _| !self.alive.contains(node));
    }

    /// Notes what a node used that is gone. Others may tell it again.
    fn goes(&mut self, node: String, mut counts: Counts) {
        // Its calls are gone, too.
        counts[Kind::Parallel as usize] = (0, 0);
        let known = self.gone.entry(node).or_default();
        known.iter_mut().zip(counts).for_each(|(known, told)| *known = (*known).max(told));
        if self.gone.len() > MOST_GONE {
            let used = |counts: &Counts| counts.iter().map(|(_, used)| u128::from(*used)).sum::<u128>();
            let least = self.gone.iter().min_by_key(|(_, counts)| used(counts)).map(|(node, _)| node.clone());
            least.and_then(|node| self.gone.remove(&node));
        }
    }

    /// Returns how much this node may use of a limit in this period.
    pub(super) fn allowed(&self, kind: Kind, limit: u64, number: Option<u64>, now: Millis) -> u64 {
        let gone = self.gone.values().map(|counts| counts[kind as usize]);
        let gone = gone
            .filter(|(at, _)| number == Some(*at))
            .fold(0, |all: u64, (_, used)| all.saturating_add(used));
        if self.alive.len() < 2 {
            return limit.saturating_sub(gone);
        }
        let told = self.told.get(&self.own).unwrap_or(&self.before);
        let part = |own, first| self.part(kind, limit, number, gone, own, first);
        let first = number.unwrap_or(now.0 / FIRST_MS);
        let both = part(told, first).min(part(&self.before, first));
        // While the first one changes, both may have begun a call.
        let before = now.0.saturating_sub(LATE_MS) / FIRST_MS;
        if number.is_none() && before != first { both.min(part(told, before)) } else { both }
    }

    /// The same if this node had told that. `first`: a number that says which node gets room first.
    fn part(&self, kind: Kind, limit: u64, number: Option<u64>, gone: u64, own: &Use, first: u64) -> u64 {
        let idle = Use::default();
        let of = |node: &String| if *node == self.own { own } else { self.told.get(node).unwrap_or(&idle) };
        let used = |told: &Use| match (number, told.counts[kind as usize]) {
            (Some(number), (at, _)) if at != number => 0,
            (_, (_, used)) => used,
        };
        let others = self.alive.iter().filter(|node| **node != self.own).map(|node| used(of(node)));
        let by_others = others.fold(gone, u64::saturating_add);
        // What runs at once is divided anew, as it never is used up.
        let is_rate = number.is_some();
        let mut left = limit;
        if is_rate {
            left = left.saturating_sub(by_others).saturating_sub(used(own));
        }
        let mut busy: Vec<&String> = self.alive.iter().filter(|node| of(node).calls > 0).collect();
        let idle = self.alive.iter().filter(|node| of(node).calls == 0);
        if !busy.is_empty() {
            let first = first % busy.len() as u64;
            busy.rotate_left(usize::try_from(first).unwrap_or(0));
        }
        let mut part = 0;
        for node in &busy {
            let need = match of(node).next {
                Some(size) if is_rate => kind.of(size).min(limit),
                next => u64::from(!is_rate || next.is_some()),
            };
            if need <= left {
                left -= need;
                part += if **node == self.own { need } else { 0 };
            }
        }
        let weight = |node: &String| u128::from(of(node).calls) * WEIGHT + 1;
        let all: u128 = self.alive.iter().map(weight).sum();
        // Rounded so that the parts of all nodes are what is left. Idle ones come last, so that none is rounded up before others.
        let up_to = |weights: u128| (u128::from(left) * weights + all / 2) / all;
        let before: u128 =
            busy.into_iter().chain(idle).take_while(|node| **node != self.own).map(weight).sum();
        let rest = up_to(before + weight(&self.own)) - up_to(before);
        let part = u64::try_from(rest).unwrap_or(u64::MAX).saturating_add(part);
        if is_rate { used(own).saturating_add(part) } else { part.min(limit.saturating_sub(by_others)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what each of four nodes may use of a limit in minute 7 if they told this.
    fn allowed(kind: Kind, limit: u64, told: &[Use; 4]) -> [u64; 4] {
        let names = ["a", "b", "c", "d"].map(ToOwned::to_owned);
        [0, 1, 2, 3].map(|own| {
            let mut nodes = Nodes::default();
            names.iter().zip(told).for_each(|(node, used)| nodes.hear(node, used.clone()));
            nodes.tell(&names[own], &names, told[own].clone());
            nodes.allowed(kind, limit, (kind != Kind::Parallel).then_some(7), Millis(60_000))
        })
    }

    #[test]
    fn what_is_left_is_divided_without_a_rest_by_the_calls_that_nodes_have_to_make() {
        let used = |calls, minute, count| Use { calls, counts: [(minute, count); 5], ..Use::default() };
        let (idle, allowed) =
            (|| used(0, 7, 0), |limit, told: [Use; 4]| allowed(Kind::RequestsPerMinute, limit, &told));
        assert_eq!(allowed(10, [idle(), idle(), idle(), idle()]), [3, 2, 3, 2]);
        // The first has used two. What the second used was in another minute, and it has three times as much to do.
        assert_eq!(allowed(10, [used(1, 7, 2), used(3, 6, 5), idle(), idle()]), [2 + 2, 6, 0, 0]);
        // What is left of one is for a node that has a call to make.
        assert_eq!(allowed(1, [used(1, 7, 0), idle(), used(1, 7, 0), idle()]), [1, 0, 0, 0]);
    }

    fn waiting(calls: u64, tokens: u64, used: u64) -> Use {
        let next = Some(Size { input: tokens, ..Size::default() });
        Use { calls, next, counts: [(7, used), (7, used), (7, used), (0, used), (7, used)], ..Use::default() }
    }

    #[test]
    fn each_node_gets_room_for_its_next_call_before_the_rest_is_divided() {
        let told = [waiting(500, 60, 0), waiting(1, 60, 0), Use::default(), waiting(1, 20, 0)];
        // The minute's number says who is first: the second of three.
        assert_eq!(allowed(Kind::TokensPerMinute, 100, &told), [20, 60, 0, 20], "the rest by calls");
        assert_eq!(allowed(Kind::RequestsPerMinute, 60, &told), [58, 1, 0, 1]);
        // A call that is larger than the limit needs all of it.
        let told = [waiting(9, 20, 0), waiting(1, 600, 0), Use::default(), Use::default()];
        assert_eq!(allowed(Kind::TokensPerMinute, 100, &told), [0, 100, 0, 0]);
    }

    #[test]
    fn one_of_the_calls_at_once_is_for_a_node_that_has_none() {
        let told = |running| [waiting(500, 1, running), waiting(1, 1, 0), Use::default(), Use::default()];
        assert_eq!(allowed(Kind::Parallel, 4, &told(4)), [3, 0, 0, 0], "the fourth still runs");
        assert_eq!(allowed(Kind::Parallel, 4, &told(3)), [3, 1, 0, 0]);
    }

    #[test]
    fn a_single_call_at_once_is_for_one_node_after_another() {
        let told = || waiting(9, 1, 0);
        let of = |own: &str, now: u64| {
            let mut nodes = Nodes::default();
            ["a", "b"].iter().for_each(|node| nodes.hear(node, told()));
            nodes.tell(own, &["b".to_owned(), "a".to_owned()], told());
            nodes.allowed(Kind::Parallel, 1, None, Millis(now))
        };
        let at = |now| (of("a", now), of("b", now));
        assert_eq!(
            [59_999, 60_000, 61_999, 62_000, 89_999].map(at),
            [(0, 1), (0, 0), (0, 0), (1, 0), (1, 0)]
        );
    }

    #[test]
    fn what_a_node_used_that_is_gone_counts_once() {
        let used = |count| Use { counts: [(7, count); 5], ..Use::default() };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (mut a, mut b) = (Nodes::default(), Nodes::default());
        let left = |nodes: &Nodes| 100 - nodes.allowed(Kind::RequestsPerMinute, 100, Some(7), Millis(0));
        [&mut a, &mut b].into_iter().for_each(|nodes| nodes.hear("d", used(30)));
        a.tell("a", &names(&["a"]), used(0));
        // It has heard of it before it notices it, and again, and in turn.
        b.hear("a", Use { gone: a.gone.clone(), ..used(0) });
        for _ in 0..3 {
            b.tell("b", &names(&["b"]), used(0));
            a.hear("b", Use { gone: b.gone.clone(), ..used(0) });
            a.tell("a", &names(&["a"]), used(0));
        }
        assert_eq!((left(&a), left(&b)), (30, 30), "also for the last one");
        // It was only silent.
        a.hear("d", used(31));
        a.tell("a", &names(&["a", "d"]), used(0));
        assert!(a.gone.is_empty());
        a.tell("a", &names(&["a"]), used(0));
        assert_eq!(left(&a), 31);
        a.tell("a", &names(&["a"]), Use { counts: [(8, 0); 5], ..Use::default() });
        assert!(a.gone.is_empty(), "the period is over");
    }
}
