//! What holds whatever happens, in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Call, Limits, Pacer, Priority, Size, Ticket, Told, What};
use everturn_wire::{Category, Failure, TurnId};
use proptest::{collection::vec, prelude::*};

const TARGET: &str = "target";

#[derive(Clone, Debug)]
enum Act {
    Ask { turn: u8, is_background: bool, tokens: u16 },
    Hear { nth: usize, told: Option<(u16, u16, u32)> },
    Refuse { nth: usize, hint_ms: Option<u32>, category: u8 },
    End { nth: usize },
    Forget { turn: u8 },
    LetGo,
    Share { mine: u8, all: u8 },
    Pass { ms: u32 },
}

fn act() -> impl Strategy<Value = Act> {
    let told = prop::option::of((1..200_u16, 0..200_u16, 0..100_000_u32));
    prop_oneof![
        6 => (0..40_u8, any::<bool>(), any::<u16>())
            .prop_map(|(turn, is_background, tokens)| Act::Ask { turn, is_background, tokens }),
        4 => (any::<usize>(), told).prop_map(|(nth, told)| Act::Hear { nth, told }),
        3 => (any::<usize>(), prop::option::of(0..90_000_u32), 0..4_u8)
            .prop_map(|(nth, hint_ms, category)| Act::Refuse { nth, hint_ms, category }),
        4 => any::<usize>().prop_map(|nth| Act::End { nth }),
        1 => (0..40_u8).prop_map(|turn| Act::Forget { turn }),
        3 => Just(Act::LetGo),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(mine, all)| Act::Share { mine, all }),
        4 => (0..70_000_u32).prop_map(|ms| Act::Pass { ms }),
    ]
}

/// The world as the provider and the turns see it.
#[derive(Default)]
struct World {
    pacer: Pacer,
    now: u64,
    running: Vec<(Ticket, TurnId)>,
    released: BTreeMap<TurnId, u64>,
    waiting: BTreeSet<TurnId>,
    /// No call is made before this.
    hint_ends: u64,
}

impl World {
    fn pick(&mut self, nth: usize) -> Option<(Ticket, TurnId)> {
        (!self.running.is_empty()).then(|| self.running[nth % self.running.len()].clone())
    }

    fn finish(&mut self, ticket: Ticket) {
        self.running.retain(|(known, _)| *known != ticket);
    }

    fn does(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let now = Millis(self.now);
        match act {
            Act::Ask { turn, is_background, tokens } => {
                let turn = TurnId::from(turn.to_string());
                if self.running.iter().any(|(_, running)| *running == turn) {
                    return Ok(());
                }
                let priority = if *is_background { Priority::Background } else { Priority::Interactive };
                let size = Size { input: u64::from(*tokens), cached: 0, output: 10, money: 0 };
                let call = Call { turn: &turn, caller: None, since: now, priority, size };
                match self.pacer.admit(TARGET, &call, now) {
                    Admission::Go(ticket) => {
                        let granted = self.released.remove(&turn).is_some();
                        prop_assert!(granted || self.now >= self.hint_ends, "called before a hint expired");
                        prop_assert!(
                            self.running.iter().all(|(known, _)| *known != ticket),
                            "a ticket twice"
                        );
                        self.waiting.remove(&turn);
                        self.running.push((ticket, turn));
                    }
                    Admission::Wait(wait) => {
                        prop_assert!(wait.until > now, "a wait that is over: {wait:?}");
                        self.waiting.insert(turn);
                    }
                }
            }
            Act::Hear { nth, told } => {
                let Some((ticket, _)) = self.pick(*nth) else { return Ok(()) };
                let told = told.map(|(limit, left, reset_ms)| Told {
                    what: if limit % 2 == 0 { What::Requests } else { What::Tokens },
                    limit: (limit % 3 != 0).then_some(limit.into()),
                    remaining: left.into(),
                    reset_ms: reset_ms.into(),
                });
                self.pacer.heard(TARGET, ticket, &Limits(told.into_iter().collect()), now);
            }
            Act::Refuse { nth, hint_ms, category } => {
                let Some((ticket, _)) = self.pick(*nth) else { return Ok(()) };
                self.finish(ticket);
                let categories =
                    [Category::RateLimited, Category::RateLimited, Category::Overloaded, Category::Network];
                let category = categories[usize::from(*category)];
                let hint_ms = hint_ms.map(u64::from);
                let failure = Failure { hint_ms, ..Failure::new(category, true, "") };
                self.pacer.refused(TARGET, ticket, &failure, &Limits::default(), now);
            }
            Act::End { nth } => {
                let Some((ticket, _)) = self.pick(*nth) else { return Ok(()) };
                self.finish(ticket);
                self.pacer.ended(TARGET, ticket, Some(Size { input: 20, cached: 0, output: 20, money: 0 }));
            }
            Act::Forget { turn } => {
                let turn = TurnId::from(turn.to_string());
                self.pacer.forget(TARGET, &turn, now);
                self.released.remove(&turn);
                self.waiting.remove(&turn);
            }
            Act::LetGo => {
                for turn in self.pacer.let_go(usize::MAX, now) {
                    prop_assert!(self.waiting.remove(&turn), "let go, but did not wait");
                    self.released.insert(turn, self.now);
                }
            }
            Act::Share { mine, all } => self.pacer.share(TARGET, (*mine).into(), (*all).into(), now),
            Act::Pass { ms } => self.now += u64::from(*ms),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Nothing panics, no ticket is given twice, waits end in the future, and only who waits is let go. If everything
    /// that runs ends, everybody is let go in the end: nobody starves, and nobody waits for ever.
    #[test]
    fn everybody_is_let_go_in_the_end(acts in vec(act(), 1..120)) {
        let mut world = World { now: 10_000_000, ..World::default() };
        for act in &acts {
            world.does(act)?;
        }
        for rounds in 0.. {
            prop_assert!(rounds < 3_000, "{} wait for ever", world.pacer.waiting(TARGET));
            for (ticket, _) in std::mem::take(&mut world.running) {
                world.pacer.heard(TARGET, ticket, &Limits::default(), Millis(world.now));
                world.pacer.ended(TARGET, ticket, None);
            }
            world.does(&Act::LetGo)?;
            for (turn, _) in std::mem::take(&mut world.released) {
                let call = Call {
                    turn: &turn,
                    caller: None,
                    since: Millis(world.now),
                    priority: Priority::Interactive,
                    size: Size::default(),
                };
                match world.pacer.admit(TARGET, &call, Millis(world.now)) {
                    Admission::Go(ticket) => world.running.push((ticket, turn)),
                    // It came too late for what was reserved for it.
                    Admission::Wait(_) => _ = world.waiting.insert(turn),
                }
            }
            if world.pacer.waiting(TARGET) == 0 {
                break;
            }
            if world.running.is_empty() {
                let next = world.pacer.next_at(Millis(world.now));
                let next = next.map(|at| at.0).filter(|at| *at > world.now);
                prop_assert!(next.is_some(), "{} wait, and nothing will happen", world.pacer.waiting(TARGET));
                world.now = next.unwrap_or(world.now);
            }
        }
    }

    /// With a fixed window reported on each response, never more calls are made in it than it allows, however the
    /// answers overtake each other.
    #[test]
    fn a_fixed_window_is_never_exceeded(
        limit in 1..40_u64,
        order in vec((any::<usize>(), 0..3_000_u64), 50..300),
    ) {
        let mut pacer = Pacer::new();
        let start = 1_000_000_u64;
        let (mut now, mut used, mut window) = (start, 0_u64, 0_u64);
        let mut running: Vec<(Ticket, Told, u64)> = Vec::new();
        let mut first = true;
        for (n, (pick, ms)) in order.into_iter().enumerate() {
            now += ms;
            if (now - start) / 60_000 != window {
                (window, used) = ((now - start) / 60_000, 0);
            }
            let turn = TurnId::from(n.to_string());
            let (priority, size) = (Priority::Interactive, Size::default());
            let call = Call { turn: &turn, caller: None, since: Millis(now), priority, size };
            // Before the first report nothing is known.
            if (!first || running.is_empty())
                && let Admission::Go(ticket) = pacer.admit(TARGET, &call, Millis(now))
            {
                used += 1;
                prop_assert!(used <= limit, "{used} of {limit}");
                let ends = start + (window + 1) * 60_000;
                let (what, limit) = (What::Requests, Some(limit));
                running.push((ticket, Told { what, limit, remaining: limit.unwrap_or(0) - used, reset_ms: 0 }, ends));
            }
            if !running.is_empty() {
                let (ticket, told, ends) = running.swap_remove(pick % running.len());
                // A report of a window that has ended is late by more than a provider takes to answer.
                let told = Told { reset_ms: ends.saturating_sub(now), ..told };
                if told.reset_ms > 0 {
                    pacer.heard(TARGET, ticket, &Limits(vec![told]), Millis(now));
                    first = false;
                }
                pacer.ended(TARGET, ticket, None);
            }
        }
    }
}
