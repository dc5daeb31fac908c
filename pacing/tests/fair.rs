//! Callers take turns: a greedy one does not make the others wait.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Call, Limits, Pacer, Priority, Size, Told, What};
use everturn_wire::{CallerName, TurnId};
use proptest::{collection::vec, prelude::*};

const TARGET: &str = "target";
const START: u64 = 60_000_000;

fn caller(n: usize) -> CallerName {
    CallerName::parse(&format!("c{n}")).unwrap()
}

fn call<'a>(turn: &'a TurnId, caller: Option<&'a CallerName>, since: u64, priority: Priority) -> Call<'a> {
    Call { turn, caller, since: Millis(since), priority, size: Size::default() }
}

fn told(limit: u64, remaining: u64, reset_ms: u64) -> Limits {
    Limits(vec![Told { what: What::Requests, limit: Some(limit), remaining, reset_ms }])
}

/// A provider of so many requests a minute, in fixed windows, which it reports. Calls take no time.
struct Desk {
    pacer: Pacer,
    per_minute: u64,
    now: u64,
    used: (u64, u64),
    /// When each of a caller's calls was wanted and made.
    made: BTreeMap<usize, Vec<(u64, u64)>>,
}

impl Desk {
    fn new(per_minute: u64) -> Self {
        Self { pacer: Pacer::new(), per_minute, now: START, used: (0, 0), made: BTreeMap::new() }
    }

    /// A turn's name says whose it is, and since when.
    fn ask(&mut self, turn: &TurnId) {
        let (of, since) = turn.as_str().split_once(' ').unwrap();
        let (of, since) = (of.parse().unwrap(), since.split(' ').next().unwrap().parse().unwrap());
        let (now, name) = (Millis(self.now), caller(of));
        let call = call(turn, Some(&name), since, Priority::Interactive);
        let Admission::Go(ticket) = self.pacer.admit(TARGET, &call, now) else { return };
        let window = self.now / 60_000;
        if self.used.0 != window {
            self.used = (window, 0);
        }
        self.used.1 += 1;
        let left = self.per_minute.checked_sub(self.used.1).expect("the provider would refuse it");
        let limits = told(self.per_minute, left, 60_000 - self.now % 60_000);
        self.pacer.heard(TARGET, ticket, &limits, now);
        self.pacer.ended(TARGET, ticket, None);
        self.made.entry(of).or_default().push((since, self.now));
    }

    fn let_go(&mut self) {
        loop {
            let released = self.pacer.let_go(50, Millis(self.now));
            if released.is_empty() {
                return;
            }
            released.iter().for_each(|turn| self.ask(turn));
        }
    }

    /// Plays these wishes: who, and when.
    fn play(mut self, wishes: &[(usize, u64)]) -> BTreeMap<usize, Vec<(u64, u64)>> {
        let mut wishes: Vec<_> =
            wishes.iter().enumerate().map(|(n, (of, at))| (START + at, n, *of)).collect();
        wishes.sort_unstable();
        let mut wishes = wishes.into_iter().peekable();
        loop {
            let next = self.pacer.next_at(Millis(self.now)).map(|at| at.0);
            let asks_at = wishes.peek().map(|wish| wish.0);
            let Some(at) = next.into_iter().chain(asks_at).min() else { return self.made };
            self.now = self.now.max(at);
            while let Some((since, n, of)) = wishes.next_if(|wish| wish.0 <= self.now) {
                self.ask(&TurnId::from(format!("{of} {since} {n}")));
            }
            self.let_go();
        }
    }
}

fn waits(made: &BTreeMap<usize, Vec<(u64, u64)>>, of: usize) -> Vec<u64> {
    made[&of].iter().map(|(since, at)| at - since).collect()
}

fn mean(waits: &[u64]) -> u64 {
    waits.iter().sum::<u64>() / waits.len() as u64
}

/// Caller 0 is greedy: 1,000 calls at once. So that the provider is busy, the others want more than it allows as well.
#[test]
fn a_greedy_caller_makes_nobody_wait_half_as_long_again() {
    // Who comes a moment before the greedy one, and who after it has used up the first minute, which is gone.
    for (each, at, gone_ms) in [(20, 0, 0), (40, 10, 60_000)] {
        let modest: Vec<_> = (0..each).flat_map(|_| (1..10).map(|of| (of, at))).collect();
        let beside: Vec<_> = modest.iter().copied().chain(vec![(0, 5); 1_000]).collect();
        let alone = Desk::new(60).play(&modest);
        let beside = Desk::new(60).play(&beside);
        assert_eq!(beside[&0].len(), 1_000);
        for of in 1..10 {
            let (alone, beside) = (waits(&alone, of), waits(&beside, of));
            assert_eq!((alone.len(), beside.len()), (each, each));
            let last = |waits: &[u64]| waits.iter().max().copied().unwrap();
            for (beside, alone) in [(last(&beside), last(&alone)), (mean(&beside), mean(&alone))] {
                assert!((beside - gone_ms) * 2 <= alone * 3, "{of}: {beside} ms, alone {alone}");
            }
        }
    }
}

/// Who uses less than its share need not wait for the next window because a greedy one used up this one.
#[test]
fn callers_that_come_now_and_then_hardly_notice_a_greedy_one() {
    let minutes = 20;
    let modest: Vec<_> = (1..10_u64)
        .flat_map(|of| (0..minutes * 3).map(move |n| (of as usize, n * 20_000 + of * 2_100)))
        .collect();
    let greedy = vec![(0, 60_000); 1_000];
    let all: Vec<_> = modest.iter().copied().chain(greedy).collect();
    let made = Desk::new(60).play(&all);
    for of in 1..10 {
        let longest = waits(&made, of).into_iter().max().unwrap();
        assert!(longest <= 2_000, "{of} waited {longest} ms");
    }
    // What is kept for them is not lost: 33 a minute are left.
    let last = made[&0].iter().map(|(_, at)| at - START).max().unwrap();
    assert!(last <= (1 + 31 + 1) * 60_000, "the greedy one took {} s", last / 1_000);
}

proptest! {
    /// The n-th call of a caller waits for at most n calls of each other caller, and goes after its own older ones; the
    /// n-th one in the background for at most 8 n such rounds.
    #[test]
    fn the_order_is_fair(counts in vec((0..60_usize, 0..20_usize), 1..8), seed in any::<u64>()) {
        let mut pacer = Pacer::new();
        let first = TurnId::from("first");
        let Admission::Go(ticket) = pacer.admit(TARGET, &call(&first, None, START, Priority::Interactive), Millis(START))
            else { panic!("it waits") };
        pacer.heard(TARGET, ticket, &told(100_000, 0, 60_000), Millis(START));
        pacer.ended(TARGET, ticket, None);
        let mut all = Vec::new();
        for (of, (interactive, background)) in counts.iter().enumerate() {
            all.extend((0..*interactive).map(|n| (of, Priority::Interactive, n)));
            all.extend((0..*background).map(|n| (of, Priority::Background, n)));
        }
        // In any order of arrival; the age says who is older.
        let mut mixed = all.clone();
        let mut state = seed | 1;
        mixed.sort_by_cached_key(|_| { state ^= state << 13; state ^= state >> 7; state ^= state << 17; state });
        for (of, priority, n) in &mixed {
            let turn = TurnId::from(format!("{of} {priority:?} {n}"));
            let name = caller(*of);
            let since = START + *n as u64;
            let answer = pacer.admit(TARGET, &call(&turn, Some(&name), since, *priority), Millis(START + 100));
            prop_assert!(matches!(answer, Admission::Wait(_)));
        }
        let went = pacer.let_go(usize::MAX, Millis(START + 60_000));
        prop_assert_eq!(went.len(), all.len());
        let place = |of: usize, priority: Priority, n: usize| {
            let name = format!("{of} {priority:?} {n}");
            went.iter().position(|turn| turn.as_str() == name).unwrap()
        };
        for (of, (interactive, background)) in counts.iter().enumerate() {
            for n in 0..*interactive {
                let before: usize = counts.iter().map(|(others, _)| (*others).min(n + 1)).sum();
                // One of eight is in the background.
                let at = place(of, Priority::Interactive, n);
                prop_assert!(at < before + before.div_ceil(7), "{of}, {n}: {at} of {before}");
                prop_assert!(n == 0 || place(of, Priority::Interactive, n - 1) < at);
            }
            for n in 0..*background {
                let before: usize = counts.iter().map(|(_, others)| (*others).min(n + 1)).sum();
                prop_assert!(place(of, Priority::Background, n) < 8 * before);
            }
        }
    }
}
