//! Limits of callers: never exceeded, and never left unused while calls wait; over a restart and on several nodes, too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Call, Kind, Limits, Pacer, Priority, Size, Terms, Ticket};
use everturn_wire::{CallerName, Category, Failure, TurnId};

const TARGETS: [&str; 2] = ["a", "b"];
const START: u64 = 20_000 * 24 * 60 * 60_000 + 12_345;
const MINUTE: u64 = 60_000;
const ESTIMATE: Size = Size { input: 400, output: 100 };

fn ann() -> CallerName {
    CallerName::parse("ann").unwrap()
}

fn pacer(terms: Terms) -> Pacer {
    let mut pacer = Pacer::new();
    pacer.set_callers([(ann(), terms)]);
    pacer
}

/// A process that has calls to make.
struct Node {
    pacer: Pacer,
    terms: Terms,
    waiting: BTreeMap<TurnId, usize>,
    /// When each call ends, and what it really used.
    running: Vec<(u64, Ticket, usize, Size)>,
}

struct World {
    nodes: Vec<Node>,
    now: u64,
    takes_ms: u64,
    /// When each call began, and its real tokens.
    began: Vec<(u64, u64)>,
    asked: usize,
    most_at_once: usize,
    rng: u64,
}

impl World {
    fn new(terms: Terms, nodes: usize, takes_ms: u64) -> Self {
        let node = |_| Node { pacer: pacer(terms), terms, waiting: BTreeMap::new(), running: Vec::new() };
        Self {
            nodes: (0..nodes).map(node).collect(),
            now: START,
            takes_ms,
            began: Vec::new(),
            asked: 0,
            most_at_once: 0,
            rng: 7,
        }
    }

    /// So many more calls are wanted on a node, by turns on both targets.
    fn want(&mut self, node: usize, calls: usize) {
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
                let real = Size { input: 300, output: (self.rng >> 33) % 401 };
                at.running.push((self.now + self.takes_ms, ticket, target, real));
                self.began.push((self.now, real.input + real.output));
                let running: usize = self.nodes.iter().map(|node| node.running.len()).sum();
                self.most_at_once = self.most_at_once.max(running);
            }
            Admission::Wait(_) => _ = at.waiting.insert(turn, target),
        }
    }

    /// Plays until this time.
    fn play(&mut self, until: u64) {
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
            let next = if self.nodes.len() > 1 { next.into_iter().chain([tells]).min() } else { next };
            let Some(next) = next.filter(|next| *next < until) else {
                self.now = until;
                return;
            };
            self.now = next.max(self.now);
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
            self.nodes[node].pacer.told(&caller, &node.to_string(), &alive, used);
            for (other, at) in self.nodes.iter_mut().enumerate() {
                if other != node {
                    at.pacer.used_elsewhere(&caller, &node.to_string(), used);
                }
            }
        }
    }

    /// Another process takes the place of a node, with what it kept. Its calls are lost, and those that wait ask again.
    fn restart(&mut self, node: usize) {
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
    fn used(&self, period_ms: u64, limit: u64, amount: impl Fn(u64) -> u64) -> Vec<f64> {
        let mut periods = BTreeMap::<u64, u64>::new();
        for (at, tokens) in &self.began {
            *periods.entry(at / period_ms).or_default() += amount(*tokens);
        }
        periods.pop_last();
        periods.values().map(|used| *used as f64 / limit as f64).collect()
    }
}

#[track_caller]
fn check(used: &[f64], most: f64) {
    assert!(used.len() >= 5, "{} periods", used.len());
    assert!(used.iter().all(|used| *used <= most), "exceeded: {used:?}");
    // The first may be shorter than what has to ramp up.
    assert!(used[1..].iter().all(|used| *used >= 0.97), "unused: {used:?}");
}

#[test]
fn requests_in_a_minute() {
    for limit in [1, 7, 60, 1_000] {
        let mut world = World::new(Terms { requests_per_minute: Some(limit), ..Terms::default() }, 1, 3_000);
        world.want(0, 10 * limit as usize);
        world.play(START + 8 * MINUTE + 1_000);
        check(&world.used(MINUTE, limit, |_| 1), 1.0);
    }
}

#[test]
fn a_restart_gives_nothing_twice() {
    let mut world = World::new(Terms { requests_per_minute: Some(100), ..Terms::default() }, 1, 3_000);
    world.want(0, 2_000);
    for n in 1..40 {
        world.play(START + n * 17_000);
        world.restart(0);
    }
    check(&world.used(MINUTE, 100, |_| 1), 1.0);
}

#[test]
fn tokens_in_a_minute_and_in_a_day() {
    let day = 24 * 60 * MINUTE;
    let minute = Terms { tokens_per_minute: Some(60_000), ..Terms::default() };
    for (terms, period, limit) in [
        (minute, MINUTE, 60_000),
        (Terms { tokens_per_day: Some(900_000), ..Terms::default() }, day, 900_000),
    ] {
        let mut world = World::new(terms, 1, 2_000);
        world.want(0, 15_000);
        world.play(START + 7 * period);
        // By as much as the calls under way were estimated too low: all of a minute's begin at once here.
        check(&world.used(period, limit, |tokens| tokens), 1.05);
    }
}

#[test]
fn calls_at_once() {
    let mut world = World::new(Terms { parallel: Some(10), ..Terms::default() }, 1, 3_000);
    world.want(0, 5_000);
    world.play(START + 20 * MINUTE);
    assert_eq!(world.most_at_once, 10);
    let ideal = 20 * MINUTE / 3_000 * 10;
    assert!(world.began.len() as u64 * 100 >= ideal * 97, "{} of {ideal}", world.began.len());
}

#[test]
fn three_nodes_share_a_limit() {
    for shares in [[1_000, 1_000, 1_000], [4_000, 300, 20], [3_000, 0, 0]] {
        for limit in [5, 60, 300] {
            let terms = Terms { requests_per_minute: Some(limit), ..Terms::default() };
            let mut world = World::new(terms, 3, 3_000);
            // They have been there for a while.
            world.play(START + 3_000);
            for (node, calls) in shares.into_iter().enumerate() {
                world.want(node, calls);
            }
            world.play(START + 8 * MINUTE + 1_000);
            let used = world.used(MINUTE, limit, |_| 1);
            assert!(used.iter().all(|used| *used <= 1.1), "{shares:?}, {limit}: {used:?}");
            assert!(used[1..].iter().all(|used| *used >= 0.97), "{shares:?}, {limit}: {used:?}");
        }
    }
}

#[test]
fn three_nodes_share_calls_at_once() {
    let mut world = World::new(Terms { parallel: Some(30), ..Terms::default() }, 3, 3_000);
    world.play(START + 3_000);
    (0..3).for_each(|node| world.want(node, 2_000));
    world.play(START + 8 * MINUTE);
    assert!(world.most_at_once <= 33, "{}", world.most_at_once);
    let ideal = 8 * MINUTE / 3_000 * 30;
    assert!(world.began.len() as u64 * 100 >= ideal * 96, "{} of {ideal}", world.began.len());
}

#[test]
fn what_a_caller_is_told_and_what_counts() {
    let terms = Terms { requests_per_minute: Some(2), priority: Priority::Background, ..Terms::default() };
    let (mut pacer, now, name) = (pacer(terms), Millis(START), ann());
    let turns: Vec<TurnId> = (0..9).map(|n| TurnId::from(n.to_string())).collect();
    let call = |n: usize, caller: Option<&'static CallerName>| Call {
        turn: &turns[n],
        caller,
        since: now,
        priority: Priority::Interactive,
        size: ESTIMATE,
    };
    let name: &'static CallerName = Box::leak(Box::new(name));
    let Admission::Go(refused) = pacer.admit("a", &call(0, Some(name)), now) else { panic!("it waits") };
    // A refusal by the provider does not count, a bad request does.
    pacer.refused("a", refused, &Failure::new(Category::Overloaded, true, ""), &Limits::default(), now);
    let Admission::Go(bad) = pacer.admit("a", &call(0, Some(name)), now) else { panic!("it waits") };
    pacer.refused("a", bad, &Failure::new(Category::InvalidRequest, false, ""), &Limits::default(), now);
    let Admission::Go(_) = pacer.admit("b", &call(1, Some(name)), now) else { panic!("it waits") };
    // Whatever it calls, and whoever asked.
    let Admission::Wait(wait) = pacer.admit("a", &call(2, Some(name)), now) else { panic!("it goes") };
    let next = Millis((START / MINUTE + 1) * MINUTE);
    assert_eq!((wait.until, wait.because), (next, Because::CallerLimit));
    assert_eq!(pacer.insist("a", &call(3, Some(name)), now), Err(wait));
    let held = pacer.held(Some(name), ESTIMATE, now).unwrap();
    assert_eq!((held.kind, held.limit), (Kind::RequestsPerMinute, 2));
    // Others are not held, and another limit holds at once.
    assert!(matches!(pacer.admit("a", &call(4, None), now), Admission::Go(_)));
    pacer.set_callers([(name.clone(), Terms { requests_per_minute: Some(3), ..terms })]);
    assert_eq!(pacer.let_go(9, now), [turns[2].clone()]);
    // A call that would never fit goes when nothing else was used.
    pacer.set_callers([(name.clone(), Terms { tokens_per_minute: Some(100), ..Terms::default() })]);
    assert!(matches!(pacer.admit("b", &call(5, Some(name)), now), Admission::Wait(_)));
    assert_eq!(pacer.let_go(9, next), [turns[5].clone()]);
}
