//! Processes of one caller that has limits, on virtual time.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Call, Limits, Pacer, Priority, Size, Terms, Ticket, Use};
use everturn_wire::{CallerName, TurnId};

pub(crate) const TARGETS: [&str; 2] = ["a", "b"];
pub(crate) const START: u64 = 20_000 * 24 * 60 * 60_000 + 12_345;
pub(crate) const MINUTE: u64 = 60_000;
pub(crate) const ESTIMATE: Size = Size { input: 400, cached: 0, output: 100, money: 1_300 };

pub(crate) fn ann() -> CallerName {
    CallerName::parse("ann").unwrap()
}

pub(crate) fn pacer(terms: Terms) -> Pacer {
    let mut pacer = Pacer::new();
    pacer.set_callers([(ann(), terms)]);
    pacer
}

/// A process that has calls to make.
pub(crate) struct Node {
    pacer: Pacer,
    terms: Terms,
    waiting: BTreeMap<TurnId, usize>,
    /// What it told others last.
    told: Option<Use>,
    /// When each call ends, and what it really used.
    running: Vec<(u64, Ticket, usize, Size)>,
}

pub(crate) struct World {
    nodes: Vec<Node>,
    now: u64,
    takes_ms: u64,
    /// When each call began, and its real size.
    pub(crate) began: Vec<(u64, Size)>,
    asked: usize,
    /// How often nodes told nothing new, in a row.
    quiet: usize,
    pub(crate) most_at_once: usize,
    rng: u64,
}

impl World {
    pub(crate) fn new(terms: Terms, nodes: usize, takes_ms: u64) -> Self {
        let node = |_| Node {
            pacer: pacer(terms),
            terms,
            waiting: BTreeMap::new(),
            told: None,
            running: Vec::new(),
        };
        Self {
            nodes: (0..nodes).map(node).collect(),
            now: START,
            takes_ms,
            began: Vec::new(),
            asked: 0,
            quiet: 0,
            most_at_once: 0,
            rng: 7,
        }
    }

    /// So many more calls are wanted on a node, by turns on both targets.
    pub(crate) fn want(&mut self, node: usize, calls: usize) {
        for _ in 0..calls {
            self.asked += 1;
            self.ask(node, TurnId::from(self.asked.to_string()), self.asked % 2);
        }
    }

    fn ask(&mut self, node: usize, turn: TurnId, target: usize) {
        let (now, name) = (Millis(self.now), ann());
        let (since, priority) = (now, Priority::Interactive);
        let call = Call { turn: &turn, caller: Some(&name), since, priority, size: ESTIMATE };
        let at = &mut self.nodes[node];
        match at.pacer.admit(TARGETS[target], &call, now) {
            Admission::Go(ticket) => {
                at.waiting.remove(&turn);
                at.pacer.heard(TARGETS[target], ticket, &Limits::default(), now);
                // 300 to 700 tokens.
                self.rng =
                    self.rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let output = (self.rng >> 33) % 401;
                let real = Size { input: 300, cached: 0, output, money: 300 + 5 * output };
                at.running.push((self.now + self.takes_ms, ticket, target, real));
                self.began.push((self.now, real));
                let running: usize = self.nodes.iter().map(|node| node.running.len()).sum();
                self.most_at_once = self.most_at_once.max(running);
            }
            Admission::Wait(_) => _ = at.waiting.insert(turn, target),
        }
    }

    /// How many calls wait on a node.
    pub(crate) fn waiting(&self, node: usize) -> usize {
        self.nodes[node].waiting.len()
    }

    /// Plays until this time. Nodes that have nothing new to tell say nothing.
    pub(crate) fn play(&mut self, until: u64) {
        let mut tells = START;
        loop {
            for node in 0..self.nodes.len() {
                self.let_go(node);
            }
            let ends = self.nodes.iter().flat_map(|node| node.running.iter().map(|call| call.0)).min();
            let now = Millis(self.now);
            let opens = self.nodes.iter_mut().filter_map(|node| node.pacer.next_at(now).map(|at| at.0));
            let next = opens.chain(ends).min();
            // Nodes tell each other one after another, each once a second.
            while tells <= self.now {
                tells += 1_000 / self.nodes.len() as u64;
            }
            let has_news = self.nodes.len() > 1 && self.quiet < 3 * self.nodes.len();
            let next = if has_news { next.into_iter().chain([tells]).min() } else { next };
            let Some(next) = next.filter(|next| *next < until) else {
                self.now = until;
                return;
            };
            self.now = next.max(self.now);
            if self.now != tells {
                self.quiet = 0;
            }
            for node in &mut self.nodes {
                let over = node.running.extract_if(.., |call| call.0 <= self.now);
                for (_, ticket, target, real) in over {
                    node.pacer.ended(TARGETS[target], ticket, Some(real));
                }
            }
            if self.nodes.len() > 1 && self.now == tells {
                self.tell((self.now * self.nodes.len() as u64 / 1_000) as usize % self.nodes.len());
            }
        }
    }

    fn let_go(&mut self, node: usize) {
        loop {
            let released = self.nodes[node].pacer.let_go(50, Millis(self.now));
            if released.is_empty() {
                return;
            }
            for turn in released {
                let target = self.nodes[node].waiting[&turn];
                self.ask(node, turn, target);
            }
        }
    }

    fn tell(&mut self, node: usize) {
        let alive: Vec<String> = (0..self.nodes.len()).map(|node| node.to_string()).collect();
        for (caller, used) in self.nodes[node].pacer.used_by_callers(Millis(self.now)) {
            self.quiet = if self.nodes[node].told.as_ref() == Some(&used) { self.quiet + 1 } else { 0 };
            self.nodes[node].told = Some(used.clone());
            self.nodes[node].pacer.told(&caller, &node.to_string(), &alive, used.clone());
            for (other, at) in self.nodes.iter_mut().enumerate() {
                if other != node {
                    at.pacer.used_elsewhere(&caller, &node.to_string(), used.clone());
                }
            }
        }
    }

    /// Another process takes the place of a node, with what it kept. Its calls are lost, and those that wait ask again.
    pub(crate) fn restart(&mut self, node: usize) {
        let now = Millis(self.now);
        let kept = self.nodes[node].pacer.counts_of_callers(now);
        let terms = self.nodes[node].terms;
        let mut next = Pacer::new();
        kept.iter().for_each(|(caller, counts)| next.restore_caller(caller, *counts));
        next.set_callers([(ann(), terms)]);
        let before = std::mem::replace(&mut self.nodes[node].pacer, next);
        drop(before);
        self.nodes[node].running.clear();
        for (turn, target) in std::mem::take(&mut self.nodes[node].waiting) {
            self.ask(node, turn, target);
        }
    }

    /// Returns how much was used in each whole period, as a share of the limit; the last one is left out.
    pub(crate) fn used(&self, period_ms: u64, limit: u64, amount: impl Fn(Size) -> u64) -> Vec<f64> {
        let mut periods = BTreeMap::<u64, u64>::new();
        for (at, size) in &self.began {
            *periods.entry(at / period_ms).or_default() += amount(*size);
        }
        periods.pop_last();
        periods.values().map(|used| *used as f64 / limit as f64).collect()
    }
}
