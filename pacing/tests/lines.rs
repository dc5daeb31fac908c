//! Lines at several targets at once: nobody is overlooked, whatever happens at other targets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Call, Limits, Pacer, Priority, Size, Terms, Ticket, Told, What};
use everturn_wire::{CallerName, Category, Failure, TurnId, Unreached};
use proptest::{collection::vec, prelude::*};

const START: u64 = 1_000 * 60_000;
const TARGETS: [&str; 3] = ["a", "b", "c"];

/// Of how many calls at once, and of how many a minute, the limited caller may make.
const PARALLEL: usize = 2;
const PER_MINUTE: u64 = 6;

fn ann() -> CallerName {
    CallerName::parse("ann").unwrap()
}

fn requests(limit: u64, remaining: u64, reset_ms: u64) -> Limits {
    Limits(vec![Told { what: What::Requests, limit: Some(limit), remaining, reset_ms }])
}

#[derive(Clone, Debug)]
enum Act {
    Ask {
        turn: u8,
        target: usize,
    },
    Hear {
        nth: usize,
        told: Option<(u8, u32)>,
    },
    End {
        nth: usize,
    },
    Refuse {
        nth: usize,
        category: Category,
        hint_ms: Option<u32>,
        unreached: Option<Unreached>,
    },
    /// A person asks for a call.
    Insist {
        turn: u8,
        target: usize,
    },
    Elsewhere {
        target: usize,
        what: Elsewhere,
    },
    Forget {
        turn: u8,
    },
    LetGo,
    Pass {
        ms: u32,
    },
}

/// What another process tells of a target.
#[derive(Clone, Debug)]
enum Elsewhere {
    Refused { ago_ms: u32, hint_ms: Option<u32>, probe_ms: u32 },
    Probed,
    Accepted { ago_ms: u32 },
    Shared { mine: u64, all: u64 },
}

fn elsewhere() -> impl Strategy<Value = Elsewhere> {
    let hint_ms = prop::option::of(0..90_000_u32);
    prop_oneof![
        (0..9_000_u32, hint_ms, 0..60_000_u32).prop_map(|(ago_ms, hint_ms, probe_ms)| Elsewhere::Refused {
            ago_ms,
            hint_ms,
            probe_ms
        }),
        Just(Elsewhere::Probed),
        (0..9_000_u32).prop_map(|ago_ms| Elsewhere::Accepted { ago_ms }),
        (1..4_u64, 1..5_u64).prop_map(|(mine, all)| Elsewhere::Shared { mine, all }),
    ]
}

/// Few turns at one target meet in more ways than many at several.
fn act(turns: u8, targets: usize) -> impl Strategy<Value = Act> {
    let category = prop::sample::select(vec![
        Category::RateLimited,
        Category::RateLimited,
        Category::Overloaded,
        Category::ServerError,
    ]);
    let unreached = prop::option::weighted(0.3, Just(Unreached::NoRoute));
    prop_oneof![
        6 => (0..turns, 0..targets).prop_map(|(turn, target)| Act::Ask { turn, target }),
        3 => (any::<usize>(), prop::option::of((0..9_u8, 0..90_000_u32))).prop_map(|(nth, told)| Act::Hear { nth, told }),
        3 => any::<usize>().prop_map(|nth| Act::End { nth }),
        2 => (any::<usize>(), category, prop::option::of(0..90_000_u32), unreached)
            .prop_map(|(nth, category, hint_ms, unreached)| Act::Refuse { nth, category, hint_ms, unreached }),
        1 => (0..turns, 0..targets).prop_map(|(turn, target)| Act::Insist { turn, target }),
        1 => (0..targets, elsewhere()).prop_map(|(target, what)| Act::Elsewhere { target, what }),
        1 => (0..turns).prop_map(|turn| Act::Forget { turn }),
        3 => Just(Act::LetGo),
        3 => (0..70_000_u32).prop_map(|ms| Act::Pass { ms }),
    ]
}

struct World {
    pacer: Pacer,
    now: u64,
    running: Vec<(usize, TurnId, Ticket)>,
    /// Where each turn waits, and whether it was let go.
    waiting: BTreeMap<TurnId, (usize, bool)>,
}

impl World {
    fn new() -> Self {
        let mut pacer = Pacer::new();
        let (requests_per_minute, parallel) = (Some(PER_MINUTE), Some(PARALLEL as u64));
        pacer.set_callers([(ann(), Terms { requests_per_minute, parallel, ..Terms::default() })]);
        Self { pacer, now: START, running: Vec::new(), waiting: BTreeMap::new() }
    }

    /// Runs a call of a turn: every second one is of a caller with limits.
    fn call<T>(&mut self, turn: &TurnId, does: impl FnOnce(&mut Pacer, &Call<'_>, Millis) -> T) -> T {
        let (ann, now) = (ann(), Millis(self.now));
        let caller = turn.as_str().len().is_multiple_of(2).then_some(&ann);
        let (priority, size) = (Priority::Interactive, Size::default());
        does(&mut self.pacer, &Call { turn, caller, since: now, priority, size }, now)
    }

    fn ask(&mut self, turn: TurnId, target: usize) {
        if self.running.iter().any(|(_, running, _)| *running == turn) {
            return;
        }
        match self.call(&turn, |pacer, call, now| pacer.admit(TARGETS[target], call, now)) {
            Admission::Go(ticket) => {
                self.waiting.remove(&turn);
                self.running.push((target, turn, ticket));
            }
            Admission::Wait(_) => _ = self.waiting.insert(turn, (target, false)),
        }
    }

    fn insist(&mut self, turn: TurnId, target: usize) {
        if self.running.iter().any(|(_, running, _)| *running == turn) {
            return;
        }
        match self.call(&turn, |pacer, call, now| pacer.insist(TARGETS[target], call, now)) {
            Ok(ticket) => {
                self.waiting.remove(&turn);
                self.running.push((target, turn, ticket));
            }
            // It keeps its place in this line only.
            Err(_) => self.waiting.retain(|known, (at, _)| *known != turn || *at == target),
        }
    }

    fn hear_elsewhere(&mut self, target: &str, what: &Elsewhere) {
        let (pacer, now) = (&mut self.pacer, Millis(self.now));
        match *what {
            Elsewhere::Refused { ago_ms, hint_ms, probe_ms } => {
                let hint_ms = hint_ms.map(u64::from);
                pacer.refused_elsewhere(target, &"x".into(), ago_ms.into(), hint_ms, probe_ms.into(), now);
            }
            Elsewhere::Probed => pacer.probed_elsewhere(target, now),
            Elsewhere::Accepted { ago_ms } => pacer.accepted_elsewhere(target, ago_ms.into(), now),
            Elsewhere::Shared { mine, all } => pacer.share(target, mine, all, now),
        }
    }

    fn let_go(&mut self) -> Result<(), TestCaseError> {
        for turn in self.pacer.let_go(usize::MAX, Millis(self.now)) {
            let known = self.waiting.get_mut(&turn);
            prop_assert!(known.as_ref().is_some_and(|known| !known.1), "{turn} was let go, but did not wait");
            known.unwrap().1 = true;
        }
        Ok(())
    }

    fn does(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let now = Millis(self.now);
        let nth = |nth: usize| (!self.running.is_empty()).then(|| nth % self.running.len());
        match *act {
            Act::Ask { turn, target } => self.ask(TurnId::from(turn.to_string()), target),
            Act::Hear { nth: n, told } => {
                let Some((target, _, ticket)) = nth(n).map(|nth| &self.running[nth]) else { return Ok(()) };
                let told =
                    told.map_or_else(Limits::default, |(left, ms)| requests(9, left.into(), ms.into()));
                self.pacer.heard(TARGETS[*target], *ticket, &told, now);
            }
            Act::End { nth: n } => {
                let Some((target, _, ticket)) = nth(n).map(|nth| self.running.remove(nth)) else {
                    return Ok(());
                };
                self.pacer.ended(TARGETS[target], ticket, None);
            }
            Act::Insist { turn, target } => self.insist(TurnId::from(turn.to_string()), target),
            Act::Elsewhere { target, ref what } => self.hear_elsewhere(TARGETS[target], what),
            Act::Refuse { nth: n, category, hint_ms, unreached } => {
                let Some((target, turn, ticket)) = nth(n).map(|nth| self.running.remove(nth)) else {
                    return Ok(());
                };
                let hint_ms = hint_ms.map(u64::from);
                let failure = Failure { hint_ms, unreached, ..Failure::new(category, true, "") };
                let name = TARGETS[target];
                let until =
                    self.call(&turn, |pacer, call, now| pacer.unreached(name, ticket, call, &failure, now));
                match until {
                    Some(_) => _ = self.waiting.insert(turn, (target, false)),
                    None => self.pacer.refused(name, ticket, &failure, &Limits::default(), now),
                }
            }
            Act::Forget { turn } => {
                let turn = TurnId::from(turn.to_string());
                if let Some((target, _)) = self.waiting.remove(&turn) {
                    self.pacer.forget(TARGETS[target], &turn, now);
                }
            }
            Act::LetGo => self.let_go()?,
            Act::Pass { ms } => self.now += u64::from(ms),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Once what runs ends, everybody is let go by `let_go` and `next_at` alone, wherever they wait.
    #[test]
    fn nobody_is_overlooked(
        acts in (2..20_u8, 1..4_usize).prop_flat_map(|(turns, targets)| vec(act(turns, targets), 1..100))
    ) {
        let mut world = World::new();
        for act in acts {
            world.does(&act)?;
            let waiting = TARGETS.map(|name| world.pacer.waiting(name)).iter().sum::<usize>();
            prop_assert_eq!(waiting, world.waiting.values().filter(|(_, is_let_go)| !is_let_go).count());
            for (target, name) in TARGETS.iter().enumerate() {
                let is_made = world.running.iter().any(|(at, ..)| *at == target)
                    || world.waiting.values().any(|known| *known == (target, true));
                prop_assert!(is_made || !world.pacer.is_probed(name, Millis(world.now)), "no call finds out about {name}");
            }
        }
        for rounds in 0.. {
            prop_assert!(rounds < 1_000, "they wait for ever: {:?}", world.waiting);
            for (target, _, ticket) in std::mem::take(&mut world.running) {
                world.pacer.heard(TARGETS[target], ticket, &Limits::default(), Millis(world.now));
                world.pacer.ended(TARGETS[target], ticket, None);
            }
            world.let_go()?;
            let gone: Vec<_> = world.waiting.iter().filter(|(_, known)| known.1).collect();
            let gone: Vec<_> = gone.into_iter().map(|(turn, (target, _))| (turn.clone(), *target)).collect();
            gone.into_iter().for_each(|(turn, target)| world.ask(turn, target));
            if world.waiting.is_empty() {
                break;
            }
            if world.running.is_empty() {
                let next = world.pacer.next_at(Millis(world.now));
                prop_assert!(next.is_some_and(|at| at.0 > world.now), "nothing will happen: {:?}", world.waiting);
                world.now = next.unwrap().0;
            }
        }
    }
}

#[test]
fn a_window_is_whole_again_at_its_end_whoever_asks() {
    let mut world = World::new();
    world.ask("first".into(), 0);
    let (_, _, ticket) = world.running[0];
    world.pacer.heard("a", ticket, &requests(10, 3, 20_000), Millis(START));
    let left = |world: &World| world.pacer.known("a", Millis(world.now)).unwrap().limits[0].remaining;
    assert_eq!(left(&world), 3);
    world.now += 20_000;
    assert_eq!(world.pacer.let_go(9, Millis(world.now)), []);
    assert_eq!(left(&world), 10);
}
