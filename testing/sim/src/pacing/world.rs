//! Plays a policy against a provider.

use std::{cmp::Reverse, collections::BinaryHeap};

use everturn_pacing::Limits;
use everturn_wire::Failure;

use super::{
    figures::Figures,
    load::Load,
    ours::Ours,
    policy::{News, Next, Policy, PolicyKind, Wanted},
    rivals::{Aimd, AwsAdaptive, FullJitter, Oracle, Shares},
    vendor::{Answer, Rule, Tells, Vendor},
};

/// How often servers tell each other what they have to do, in milliseconds.
const TELL_MS: u64 = 1_000;

/// How long a notice is on its way, in milliseconds.
const NOTICE_MS: u64 = 20;

/// After so long, a run is given up, in milliseconds: a day.
const GIVES_UP_MS: u64 = 24 * 60 * 60 * 1_000;

/// A provider and a load.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How the provider limits calls, for people.
    pub name: &'static str,
    pub(super) rule: Rule,
    /// What the provider says of its limits.
    pub tells: Tells,
    /// Who wants to call.
    pub load: Load,
}

#[derive(Debug)]
enum Event {
    Want { turn: usize, version: u32 },
    Heard { turn: usize, limits: Limits },
    Refused { turn: usize, failure: Box<Failure>, limits: Limits },
    Ended { turn: usize },
    Look { node: usize, version: u32 },
    Tell,
    News { node: usize, news: News },
}

/// A turn on its way.
struct Turn {
    calls_left: u32,
    since: u64,
    /// Whether it waits: only then it can be woken. The version makes outdated wake-ups void.
    waits: bool,
    version: u32,
}

struct World<'a> {
    load: &'a Load,
    vendor: Vendor,
    policies: Vec<Box<dyn Policy>>,
    /// By node, void if outdated.
    looks: Vec<(u32, Option<u64>)>,
    turns: Vec<Turn>,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    pending: Vec<Option<Event>>,
    order: u64,
    figures: Figures,
    unfinished: usize,
}

/// Plays a policy against the scenario's provider until everybody has been served.
pub fn run(scenario: &Scenario, kind: PolicyKind, seed: u64) -> Figures {
    let load = &scenario.load;
    let policy = |node: usize| -> Box<dyn Policy> {
        let seed = seed.wrapping_mul(31).wrapping_add(node as u64);
        match kind {
            PolicyKind::Oracle => Box::new(Oracle::default()),
            PolicyKind::Ours => Box::new(Ours::default()),
            PolicyKind::FullJitter => Box::new(FullJitter::new(seed)),
            PolicyKind::AwsAdaptive => Box::new(AwsAdaptive::new(seed)),
            PolicyKind::Aimd => Box::new(Aimd::new(seed)),
            PolicyKind::Shares => Box::new(Shares::new(seed)),
        }
    };
    // The oracle is one for all nodes.
    let nodes = if kind == PolicyKind::Oracle { 1 } else { load.nodes };
    let turns = load.wishes.iter().map(|wish| Turn {
        calls_left: wish.calls,
        since: wish.at,
        waits: true,
        version: 0,
    });
    let mut world = World {
        load,
        vendor: Vendor::new(scenario.rule, scenario.tells, seed),
        policies: (0..nodes).map(policy).collect(),
        looks: vec![(0, None); nodes],
        turns: turns.collect(),
        events: BinaryHeap::new(),
        pending: Vec::new(),
        order: 0,
        figures: Figures::default(),
        unfinished: load.wishes.len(),
    };
    for (turn, wish) in load.wishes.iter().enumerate() {
        world.at(wish.at, Event::Want { turn, version: 0 });
    }
    if nodes > 1 {
        world.at(0, Event::Tell);
    }
    world.play();
    (world.figures.calls, world.figures.refused) = (world.vendor.calls, world.vendor.refused);
    world.figures
}

impl World<'_> {
    fn at(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, self.pending.len())));
        self.pending.push(Some(event));
    }

    fn play(&mut self) {
        while self.unfinished > 0
            && let Some(Reverse((now, _, index))) = self.events.pop()
        {
            if now > GIVES_UP_MS {
                self.figures.unserved = self.unfinished;
                return;
            }
            let Some(event) = self.pending[index].take() else { continue };
            let node = match &event {
                Event::Look { node, .. } | Event::News { node, .. } => Some(*node),
                Event::Tell => None,
                Event::Want { turn, .. }
                | Event::Ended { turn }
                | Event::Heard { turn, .. }
                | Event::Refused { turn, .. } => Some(self.node(*turn)),
            };
            self.happens(event, now);
            match node {
                Some(node) => self.look(node, now),
                None => (0..self.policies.len()).for_each(|node| self.look(node, now)),
            }
            self.tell_news(now);
        }
    }

    /// Servers tell each other what they have to tell.
    fn tell_news(&mut self, now: u64) {
        for from in 0..self.policies.len() {
            for news in self.policies[from].news() {
                for node in (0..self.policies.len()).filter(|node| *node != from) {
                    self.at(now + NOTICE_MS, Event::News { node, news: news.clone() });
                }
            }
        }
    }

    fn node(&self, turn: usize) -> usize {
        self.load.wishes[turn].node % self.policies.len()
    }

    fn wanted(&self, turn: usize) -> Wanted {
        let wish = &self.load.wishes[turn];
        Wanted {
            turn,
            since: self.turns[turn].since,
            priority: wish.priority,
            caller: wish.caller,
            size: wish.size,
        }
    }

    fn happens(&mut self, event: Event, now: u64) {
        match event {
            Event::Want { turn, version } => {
                if self.turns[turn].waits && self.turns[turn].version == version {
                    self.want(turn, now);
                }
            }
            Event::Heard { turn, limits } => {
                let node = self.node(turn);
                let wish = &self.load.wishes[turn];
                self.figures.served(now, now - self.turns[turn].since, wish);
                self.policies[node].heard(turn, &limits, now);
            }
            Event::Refused { turn, failure, limits } => {
                let (node, wanted) = (self.node(turn), self.wanted(turn));
                let at = self.policies[node].refused(wanted, &failure, &limits, now);
                self.waits(turn, at.max(now + 1));
            }
            Event::Ended { turn } => {
                let node = self.node(turn);
                self.policies[node].ended(turn, now);
                let state = &mut self.turns[turn];
                state.calls_left -= 1;
                state.since = now;
                match state.calls_left {
                    0 => self.unfinished -= 1,
                    _ => self.waits(turn, now),
                }
            }
            Event::Look { node, version } => {
                if self.looks[node].0 == version {
                    self.looks[node].1 = None;
                }
            }
            Event::News { node, news } => self.policies[node].hear(&news, now),
            Event::Tell => {
                let demands: Vec<u64> = self.policies.iter().map(|policy| policy.demand()).collect();
                let all = demands.iter().sum::<u64>();
                for (policy, mine) in self.policies.iter_mut().zip(demands) {
                    policy.share(mine, all, now);
                }
                for from in 0..self.policies.len() {
                    let Some(news) = self.policies[from].lately(now) else { continue };
                    for node in (0..self.policies.len()).filter(|node| *node != from) {
                        self.at(now + NOTICE_MS, Event::News { node, news: news.clone() });
                    }
                }
                self.at(now + TELL_MS, Event::Tell);
            }
        }
    }

    fn want(&mut self, turn: usize, now: u64) {
        let (node, wanted) = (self.node(turn), self.wanted(turn));
        match self.policies[node].want(wanted, &mut self.vendor, now) {
            Next::At(at) => self.waits(turn, at),
            Next::Now => {
                self.turns[turn].waits = false;
                match self.vendor.ask(wanted.size, now) {
                    Answer::Accepted { limits, head_ms, all_ms } => {
                        self.at(now + head_ms, Event::Heard { turn, limits });
                        self.at(now + all_ms, Event::Ended { turn });
                    }
                    Answer::Refused { limits, failure, after_ms } => {
                        let failure = Box::new(failure);
                        self.at(now + after_ms, Event::Refused { turn, failure, limits });
                    }
                }
            }
        }
    }

    /// The turn asks again at this time.
    fn waits(&mut self, turn: usize, at: u64) {
        let state = &mut self.turns[turn];
        (state.waits, state.version) = (true, state.version + 1);
        let version = state.version;
        self.at(at, Event::Want { turn, version });
    }

    /// Lets released turns ask, and looks again when the policy says.
    fn look(&mut self, node: usize, now: u64) {
        loop {
            let released = self.policies[node].released(&mut self.vendor, now);
            if released.is_empty() {
                break;
            }
            for turn in released {
                if self.turns[turn].waits {
                    self.want(turn, now);
                }
            }
        }
        let next = self.policies[node].next_at(&mut self.vendor, now);
        if next != self.looks[node].1 {
            self.looks[node] = (self.looks[node].0 + 1, next);
            let version = self.looks[node].0;
            if let Some(at) = next {
                self.at(at.max(now + 1), Event::Look { node, version });
            }
        }
    }
}
